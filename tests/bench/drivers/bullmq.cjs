// BullMQ; the same command line as the drivers in Python, see ../driver.py. NODE_PATH says where it is installed.
const fs = require('fs');
const { Queue, UnrecoverableError, Worker } = require('bullmq');
const { Redis } = require('ioredis');

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

const write = (figures) => {
  fs.writeFileSync(`${out}.draft`, JSON.stringify(figures));
  fs.renameSync(`${out}.draft`, out);
};

let started = 0, ended = 0, first;
const tally = {
  start() { if (++started === 1) first = moment(); },
  end() {
    if (++ended === expected) write({ first, last: moment(), pid: process.pid });
  },
};
const delays = [];

const JOBS = {
  async noop() { tally.start(); tally.end(); },
  async sleep() { tally.start(); await pause(10); tally.end(); },
  async pick_up(argument) { note(now() - argument.at); },
  async arrive(argument) {
    if (delays.push(now() - argument.at) === expected) write({ delays });
  },
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

async function putSteadily(count, interval, offset) {
  const queue = new Queue('bench', { connection });
  await queue.waitUntilReady();
  await queue.add('noop', ARGUMENT, OPTIONS);
  console.log('ready');
  await new Promise((resolve) => process.stdin.once('data', resolve));
  const began = now(), used = cpu();
  for (let i = 0; i < count; i++) {
    const left = began + offset + i * interval - now();
    if (left > 0) await pause(left * 1000);
    await queue.add('arrive', { at: now() }, OPTIONS);
  }
  console.log(JSON.stringify({ jobs: count, seconds: now() - began, cpu: cpu() - used }));
  await queue.close();
  process.exit();
}

// What each command costs Redis, one job a call: the steps of ../micro.py.
async function micro(count) {
  const queue = new Queue('bench', { connection });
  const worker = new Worker('bench', null, { connection, autorun: false });
  const client = new Redis(connection), token = 'bench';
  const redis = async () => {
    const info = await client.info('cpu', 'commandstats');
    const sum = (pattern) => [...info.matchAll(pattern)].reduce((all, found) => all + Number(found[1]), 0);
    return [sum(/^used_cpu_(?:sys|user):(.*)$/gm) * 1e6, sum(/^cmdstat_evalsha:.*usec=(\d+)/gm)];
  };
  let held = [];
  const steps = {
    async put() { for (let i = 0; i < count; i++) await queue.add('noop', ARGUMENT, { ...OPTIONS, attempts: 2 }); },
    async pop() {
      held = [];
      for (let job; held.length < count && (job = await worker.getNextJob(token, { block: false }));) held.push(job);
    },
    async heartbeat() { for (const job of held) await job.extendLock(token, 30000); },
    async retry() { for (const job of held) await job.moveToFailed(new Error('again'), token, false); },
    async complete() { for (const job of held) await job.moveToCompleted(null, token, false); },
    async fail() { for (const job of held) await job.moveToFailed(new UnrecoverableError('wrong'), token, false); },
  };
  const figures = {};
  for (const name of ['put', 'pop', 'heartbeat', 'retry', 'pop', 'complete', 'put', 'pop', 'fail']) {
    const before = await redis();
    await steps[name]();
    const after = await redis();
    figures[name] = { redis_us: (after[0] - before[0]) / count, script_us: (after[1] - before[1]) / count };
  }
  console.log(JSON.stringify(figures));
  process.exit();
}

const [what, job, count, offset] = process.argv.slice(2);
if (what === 'work') new Worker('bench', (each) => JOBS[each.name](each.data), { connection, concurrency: CONCURRENCY });
else if (what === 'steady') putSteadily(Number(job), Number(count), Number(offset));
else if (what === 'micro') micro(Number(job));
else put(what, job, Number(count));
