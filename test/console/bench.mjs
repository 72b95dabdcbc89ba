// Measures the console: frame times while scrolling through 10,000 leases at 200 events a second, the first paint, and
// what an idle console costs the server. It asserts nothing. Run it on a quiet machine:
//
//	LEASEHOLD_BINARY=bin/leasehold CHROMIUM=$(which chromium) node test/console/bench.mjs
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

const leases = 10_000
const rate = 200 // events a second
const scrolls = 10_000 // ms
const idle = 30_000 // ms

const data = mkdtempSync(join(tmpdir(), 'leasehold-console-'))
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('LEASEHOLD_')))
const server = spawn(process.env.LEASEHOLD_BINARY, ['serve', '--listen', '127.0.0.1:0', '--data', data, '--min-free', '1MiB'], { env })
const url = await new Promise((resolve) => {
  let said = ''
  const hear = (text) => {
    said += text
    const found = /^the console is at (\S+)\/$/m.exec(said)
    if (found) resolve(found[1])
  }
  server.stdout.on('data', hear)
  server.stderr.on('data', hear)
})

const post = (path, body) => fetch(url + path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }).then((a) => a.json())
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const quantile = (list, q) => [...list].sort((a, b) => a - b)[Math.min(list.length - 1, Math.floor(q * list.length))]

for (let i = 0; i < leases; i += 50) {
  const also = Array.from({ length: 49 }, (_, j) => ({ resource: `many/${String(i + j + 1).padStart(5, '0')}` }))
  await post('/v1/acquire', { resource: `many/${String(i).padStart(5, '0')}`, holder: `ci/job-${i}`, ttl: '1h', also })
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
const context = await browser.newContext({ viewport: { width: 1440, height: 920 } })

// The first paint, with an empty cache and then with what the browser has kept.
const paints = []
for (let i = 0; i < 5; i++) {
  const page = await context.newPage()
  await page.goto(url + '/')
  await page.locator('tbody tr').first().waitFor()
  paints.push(await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime))
  if (i < 4) await page.close()
}
console.log(`first contentful paint: ${paints.map((p) => p?.toFixed(0)).join(', ')} ms`)

const page = context.pages().at(-1)
let busy = true
const load = (async () => {
  for (let n = 0, began = performance.now(); busy; n++) {
    // An acquire and a release are two events.
    const lease = await post('/v1/acquire', { resource: `busy/${n % 500}`, holder: 'bench', ttl: '1m' })
    await post('/v1/release', { id: lease.id })
    const ahead = (n * 2000) / rate - (performance.now() - began)
    if (ahead > 0) await sleep(ahead)
  }
})()

// CPU time of a process or a thread, as the kernel counts it, in seconds.
const tick = Number(execFileSync('getconf', ['CLK_TCK']))
const used = (of) => {
  const fields = readFileSync(`/proc/${of}/stat`, 'utf8').split(') ')[1].split(' ')
  return (Number(fields[11]) + Number(fields[12])) / tick
}
const parentOf = (pid) => Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')[1])

/** browserTime returns the CPU time of each kind of thread of the browser: who scripts and lays out, who paints, who draws. */
function browserTime() {
  const sums = { main: 0, compositor: 0, raster: 0, draw: 0 }
  const kinds = [[/^Compositor/, 'compositor'], [/^ThreadPoolForeg/, 'raster'], [/^VizCompositor/, 'draw']]
  const processes = readdirSync('/proc').filter((d) => /^\d+$/.test(d) && descends(d))
  for (const pid of processes) {
    const renders = readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('--type=renderer')
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const name = readFileSync(`/proc/${pid}/task/${thread}/comm`, 'utf8')
      const kind = kinds.find(([pattern]) => pattern.test(name))?.[1] ?? (renders && thread === pid ? 'main' : undefined)
      if (kind) sums[kind] += used(`${pid}/task/${thread}`)
    }
  }
  return sums
}

function descends(pid) {
  try {
    for (let at = Number(pid); at > 1; at = parentOf(at)) if (at === process.pid) return Number(pid) !== process.pid
  } catch {
    return false // it has ended meanwhile
  }
  return false
}

async function scroll(page) {
  const before = browserTime()
  const frames = await page.evaluate(async (time) => {
    const list = []
    await new Promise((resolve) => {
      const began = performance.now()
      let last = began
      const step = (now) => {
        list.push(now - last)
        last = now
        scrollBy(0, 60)
        if (scrollY + innerHeight >= document.documentElement.scrollHeight - 1) scrollTo(0, 0)
        if (now - began < time) requestAnimationFrame(step)
        else resolve()
      }
      requestAnimationFrame(step)
    })
    return list.slice(1)
  }, scrolls)
  const after = browserTime()
  const cpu = Object.keys(after).map((kind) => `${kind} ${((1000 * (after[kind] - before[kind])) / frames.length).toFixed(1)}`)
  return `${frames.length} frames, p50 ${quantile(frames, 0.5).toFixed(1)} ms, p95 ${quantile(frames, 0.95).toFixed(1)} ms, ` +
    `p99 ${quantile(frames, 0.99).toFixed(1)} ms, longest ${Math.max(...frames).toFixed(1)} ms; CPU a frame, ms: ${cpu.join(', ')}`
}

console.log(`scrolling: ${await scroll(page)}`)
// What this machine and this browser can do at best: as many rows of plain text, under the same load.
await page.goto('about:blank')
await page.setContent(Array.from({ length: leases }, (_, i) => `<div style="height: 44px">many/${i}</div>`).join(''))
console.log(`scrolling plain text: ${await scroll(page)}`)
busy = false
await load

// CPU time of the server: with an idle console, and with none.
async function cost() {
  const before = used(server.pid)
  await sleep(idle)
  return (100 * (used(server.pid) - before)) / (idle / 1000)
}
await page.goto(url + '/')
await page.locator('tbody tr').first().waitFor()
await sleep(3_000)
const withConsole = await cost()
await browser.close()
await sleep(3_000)
const without = await cost()
console.log(`the server's CPU: ${withConsole.toFixed(2)} % of a core with an idle console, ${without.toFixed(2)} % with none`)

server.kill('SIGTERM')
await new Promise((resolve) => server.on('exit', resolve))
rmSync(data, { recursive: true, force: true })
