// What is not live is not shown as live.
import assert from 'node:assert/strict'
import net from 'node:net'
import { accessible, acquire, allow, api, atEnd, leasehold, scratch, serve, test, url } from './harness.mjs'
import { join } from 'node:path'

/** proxy passes connections on to the server until they are cut, and remembers what was asked. */
async function proxy() {
  const { port, hostname } = new URL(url)
  const open = new Set()
  let up = true
  const p = {
    asked: [],
    cut: () => ((up = false), open.forEach((s) => s.destroy())),
    mend: () => (up = true),
  }
  const server = net.createServer((from) => {
    if (!up) return from.destroy()
    const to = net.connect(Number(port), hostname)
    for (const s of [from, to]) {
      open.add(s)
      s.on('error', () => undefined).on('close', () => (open.delete(s), from.destroy(), to.destroy()))
    }
    from.on('data', (text) => p.asked.push(String(text)))
    from.pipe(to)
    to.pipe(from)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  p.url = 'http://127.0.0.1:' + server.address().port
  allow(p.url)
  atEnd(() => (p.cut(), server.close()))
  return p
}

test('a stream that is cut is shown as such, and resumes where it was', async (page) => {
  const p = await proxy()
  await page.goto(p.url + '/')
  await page.getByText('reports/nightly').first().waitFor()
  const lease = await acquire('cut/before', 'ann')
  await page.getByText('cut/before').first().waitFor()
  p.cut()
  await page.getByText('Not connected since').waitFor()
  await page.locator('table.stale').waitFor()
  await accessible(page)
  await acquire('cut/meanwhile', 'bob')
  await api('POST', '/v1/release', { id: lease.id })
  assert.equal(await page.getByText('cut/meanwhile').count(), 0)
  p.asked = []
  p.mend()
  await page.getByText('cut/meanwhile').first().waitFor()
  await page.getByText('Not connected since').waitFor({ state: 'detached' })
  await page.locator('table.stale').waitFor({ state: 'detached' })
  await page.locator('tbody tr', { hasText: 'cut/before' }).waitFor({ state: 'detached' })
  const watches = p.asked.filter((text) => text.startsWith('GET /v1/watch'))
  assert.ok(watches.length > 0 && watches.every((text) => /^last-event-id: \d+\.\d+/im.test(text)), watches.join('\n'))
})

test('after a restore the console says that nothing is granted, and what to do', async (page) => {
  const dir = scratch()
  await leasehold('backup', join(dir, 'backup'), '--server', url)
  await leasehold('restore', join(dir, 'backup'), '--data', join(dir, 'data'))
  const at = await serve(join(dir, 'data'), '--min-free', '1MiB')
  await page.goto(at + '/')
  await page.getByText('Nothing is granted yet: the cluster was restored from a backup').waitFor()
  await page.getByText('leasehold cluster end-quarantine').first().waitFor()
  await api('POST', '/v1/cluster/quarantine/end', { reason: 'a test' }, { at })
})

test('with a full disk the console says that nothing new is granted', async (page) => {
  const at = await serve(scratch(), '--min-free', '100000GiB')
  await page.goto(at + '/')
  await page.getByText('is nearly full: nothing new is granted').waitFor()
})

test('ten thousand leases are one table', async (page) => {
  const size = 50
  for (let i = 0; i < 10_000; i += 4 * size) {
    await Promise.all([0, 1, 2, 3].map((k) => {
      const also = Array.from({ length: size - 1 }, (_, j) => ({ resource: `many/${i + k * size + j + 1}` }))
      return acquire(`many/${i + k * size}`, `ci/job-${i}`, { ttl: '1h', also })
    }))
  }
  await page.goto(url + '/?q=resource:many/*&sort=-resource')
  await page.locator('tbody tr', { hasText: 'many/9999' }).first().waitFor()
  assert.equal(await page.locator('table').first().getAttribute('aria-rowcount'), '10001')
  assert.ok(await page.locator('tbody tr').count() < 100, 'only what can be seen is in the document')
  await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight))
  await page.locator('tbody tr', { hasText: 'many/0' }).first().waitFor()
})
