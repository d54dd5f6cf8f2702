// Draws each chart in its place, again without the rows whose names the reader filters out.
(() => {
  const units = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's'], [0.001, 'ms'], [1e-6, 'µs']];
  vega.expressionFunction('duration', seconds => {
    const found = units.find(([width]) => seconds >= width * 0.9995);
    return found ? `${+(seconds / found[0]).toPrecision(3)} ${found[1]}` : '0';
  });
  const charts = [...document.querySelectorAll('.chart')].map(place => {
    const chart = JSON.parse(place.querySelector('script').textContent);
    const canvas = place.appendChild(document.createElement('div'));
    canvas.style.width = '100%';
    return {chart, canvas, view: null};
  });
  const draw = (each, text) => {
    const values = each.chart.data.values.filter(row => !row.filtered || row.name.includes(text));
    const chart = {...each.chart, data: {values}};
    each.view?.finalize();
    const {spec} = vegaLite.compile(chart, {logger: vega.logger(vega.Error)});
    each.view = new vega.View(vega.parse(spec), {renderer: 'svg'})
      .initialize(each.canvas).hover();
    return each.view.runAsync();
  };
  const filter = document.querySelector('#filter');
  filter.addEventListener('input', () => {
    for (const row of document.querySelectorAll('tr[data-name]'))
      row.hidden = !row.dataset.name.includes(filter.value);
    for (const each of charts)
      if (each.chart.data.values.some(row => row.filtered)) draw(each, filter.value);
  });
  Promise.all(charts.map(each => draw(each, '')))
    .then(() => { document.documentElement.dataset.drawn = charts.length; });
})();
