// Draws each chart in its place, again without the rows whose names the reader filters out.
(() => {
  const {kinds, ticks, config, charts} = JSON.parse(document.querySelector('#charts').textContent);
  const units = [[86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's'], [0.001, 'ms'], [1e-6, 'µs']];
  vega.expressionFunction('duration', seconds => {
    const found = units.find(([width]) => seconds >= width * 0.9995);
    return found ? `${+(seconds / found[0]).toPrecision(3)} ${found[1]}` : '0';
  });
  // Returns a logarithmic scale of the values of some columns, with round durations on its axis.
  const scaled = (channel, columns, rows) => {
    const values = rows.flatMap(row => columns.map(name => row[name])).filter(value => value > 0);
    const domain = [Math.min(...values) / 1.2, Math.max(...values) * 1.2];
    const round = ticks.filter(tick => domain[0] <= tick && tick <= domain[1]);
    const axis = round.length > 2 ? {...channel.axis, values: round} : channel.axis;
    return {...channel, axis, scale: {type: 'log', domain, nice: false, clamp: true}};
  };
  // Returns a part of a chart with its kinds of channels written out.
  const expand = (part, rows) => {
    if (Array.isArray(part)) return part.map(each => expand(each, rows));
    if (part === null || typeof part !== 'object') return part;
    const entries = Object.entries(part).map(([name, value]) => [name, expand(value, rows)]);
    const {$: kind, of, ...own} = Object.fromEntries(entries);
    const whole = {...kinds[kind], ...own};
    return of ? scaled(whole, of, rows) : whole;
  };
  const places = [...document.querySelectorAll('.chart')].map(place => {
    const rows = JSON.parse(place.querySelector('script').textContent);
    const canvas = place.appendChild(document.createElement('div'));
    canvas.style.width = '100%';
    return {...charts[place.dataset.chart], rows, canvas, view: null};
  });
  const draw = (each, text) => {
    const {filtered, rows, canvas, view, ...chart} = each;
    const values = filtered ? rows.filter(row => row.name.includes(text)) : rows;
    view?.finalize();
    const whole = {width: 'container', height: 180, ...expand(chart, values), data: {values}, config};
    const {spec} = vegaLite.compile(whole, {logger: vega.logger(vega.Error)});
    each.view = new vega.View(vega.parse(spec), {renderer: 'svg'}).initialize(canvas).hover();
    return each.view.runAsync();
  };
  const filter = document.querySelector('#filter');
  filter.addEventListener('input', () => {
    for (const row of document.querySelectorAll('tr[data-name]'))
      row.hidden = !row.dataset.name.includes(filter.value);
    for (const each of places) if (each.filtered) draw(each, filter.value);
  });
  Promise.all(places.map(each => draw(each, '')))
    .then(() => { document.documentElement.dataset.drawn = places.length; });
})();
