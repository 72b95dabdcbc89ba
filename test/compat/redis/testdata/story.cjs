// Tells the story of a lease by ioredis. Where the server is, the environment says.
const assert = require('node:assert');
const fs = require('node:fs');
const Redis = require(process.env.IOREDIS);

const options = { host: process.env.HOST, port: Number(process.env.PORT) };
if (process.env.TOKEN) Object.assign(options, { username: 'default', password: process.env.TOKEN });
if (process.env.CA) options.tls = { ca: fs.readFileSync(process.env.CA) };
const connect = (more) => new Redis({ ...options, ...more });

// RESP2 has no maps: they are lists of keys and values.
const fields = (list) => {
  const map = {};
  for (let i = 0; i < list.length; i += 2) map[list[i]] = list[i + 1];
  return map;
};

async function tell() {
  const ours = connect();
  const others = connect();
  assert.equal(await ours.ping(), 'PONG');
  const acquire = async (client, ...words) => fields(await client.call('LH.ACQUIRE', ...words));
  const lease = await acquire(ours, 'io/r', 'HOLDER', 'ann', 'TTL', '30s', 'ID', 'io1', 'LABEL', 'team=a');
  assert.equal(lease.id, 'io1');
  assert(lease.token > 0);
  await assert.rejects(acquire(others, 'io/r', 'HOLDER', 'bob'), /^ReplyError: HELD io\/r is held by ann/);
  await assert.rejects(acquire(ours, 'io/r', 'COLOUR', 'red'), /COLOUR/);
  assert.equal(fields(await ours.call('LH.RENEW', 'io1')).token, lease.token);

  let granted;
  const waiting = acquire(others, 'io/r', 'HOLDER', 'bob', 'WAIT', '60s', 'ID', 'io2').then((l) => (granted = l));
  while (!fields(await ours.call('LH.GET', 'io/r')).waiting);
  assert.equal(granted, undefined);
  assert.equal(await ours.call('LH.RELEASE', 'io1'), 'OK');
  await waiting;
  assert(granted.token > lease.token);

  const many = ours.pipeline();
  for (let i = 0; i < 20; i++) many.call('LH.ACQUIRE', `io/many/${i}`, 'HOLDER', 'ann', 'ID', `im${i}`);
  many.call('LH.RENEW', 'nobody');
  const answers = await many.exec();
  const tokens = answers.slice(0, 20).map(([, l]) => fields(l).token);
  assert.deepEqual(tokens, [...new Set(tokens)].sort((a, b) => a - b));
  assert(answers[20][0] instanceof Error);

  ours.disconnect();
  others.disconnect();
  console.log('told');
}

tell().catch((error) => {
  console.error(error);
  process.exit(1);
});
