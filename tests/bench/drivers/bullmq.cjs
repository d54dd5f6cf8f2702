// BullMQ; the same command line as the drivers in Python, see ../driver.py. NODE_PATH says where it is installed.
const fs = require('fs');
const { Queue, Worker } = require('bullmq');

const CALLERS = 100, CONCURRENCY = 100, PACE = 30;
const ARGUMENT = { id: 12345, email: 'someone@example.com' };
const OPTIONS = { removeOnComplete: true, removeOnFail: true };
const at = new URL(process.env.BENCH_URL);
const connection = { host: at.hostname, port: Number(at.port) };
const expected = Number(process.env.BENCH_JOBS), out = process.env.BENCH_OUT;

const now = () => (performance.timeOrigin + performance.now()) / 1000;
const cpu = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1e6; };
const moment = () => ({ time: now(), cpu: cpu() });
const note = (value) => fs.appendFileSync(out, `${value}\n`);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

let started = 0, ended = 0, first;
const tally = {
  start() { if (++started === 1) first = moment(); },
  end() {
    if (++ended !== expected) return;
    fs.writeFileSync(`${out}.draft`, JSON.stringify({ first, last: moment(), pid: process.pid }));
    fs.renameSync(`${out}.draft`, out);
  },
};

const JOBS = {
  async noop() { tally.start(); tally.end(); },
  async sleep() { tally.start(); await pause(10); tally.end(); },
  async pick_up(argument) { note(now() - argument.at); },
  async hang() { note(now()); await pause(3600e3); },
};

async function putTogether(queue, job, count) {
  let left = count;
  const caller = async () => { while (left-- > 0) await queue.add(job, ARGUMENT, OPTIONS); };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

async function putMany(queue, job, count) {
  for (let start = 0; start < count; start += 1000) {
    const portion = { length: Math.min(1000, count - start) };
    await queue.addBulk(Array.from(portion, () => ({ name: job, data: ARGUMENT, opts: OPTIONS })));
  }
}

async function put(what, job, count) {
  const queue = new Queue('bench', { connection });
  await queue.waitUntilReady();
  if (what !== 'paced') await queue.add('noop', ARGUMENT, OPTIONS);
  const began = now(), used = cpu();
  if (what === 'one') for (let i = 0; i < count; i++) await queue.add(job, ARGUMENT, OPTIONS);
  else if (what === 'together') await putTogether(queue, job, count);
  else if (what === 'many') await putMany(queue, job, count);
  else for (let i = 0; i < count; i++) { await queue.add(job, { at: now() }, OPTIONS); await pause(PACE); }
  console.log(JSON.stringify({ jobs: count, seconds: now() - began, cpu: cpu() - used }));
  await queue.close();
}

const [what, job, count] = process.argv.slice(2);
if (what === 'work') new Worker('bench', (each) => JOBS[each.name](each.data), { connection, concurrency: CONCURRENCY });
else put(what, job, Number(count));
