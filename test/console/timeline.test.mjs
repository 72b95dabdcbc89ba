// The timeline by pointer and by key: move, zoom, choose a stretch, look at a moment.
import assert from 'node:assert/strict'
import { acquire, api, scratch, serve, test, url } from './harness.mjs'

const hour = 3_600_000

/** stretch is what the address says: from when to when. */
const stretch = (page) => {
  const query = new URL(page.url()).searchParams
  return { from: Date.parse(query.get('from')), to: Date.parse(query.get('to')) }
}

/** show opens an hour, and returns it with the place of its picture: where it begins, and pixels of a minute. */
async function show(page) {
  await acquire('timeline/held', 'ann', { ttl: '10m' }).catch(() => undefined) // another test holds it
  const to = Math.floor((Date.now() + hour / 4) / 1_000) * 1_000
  const from = to - hour
  await page.goto(`${url}/timeline?from=${new Date(from).toISOString()}&to=${new Date(to).toISOString()}`)
  await page.locator('svg text', { hasText: 'timeline/held' }).first().waitFor()
  const box = await page.locator('svg', { has: page.locator('.grid') }).boundingBox()
  const name = Math.min(260, Math.max(120, Math.floor(box.width * 0.2)))
  return { from, to, left: box.x + name, y: box.y + 40, minute: (box.width - name) / 60 }
}

async function drag(page, p, fromMinute, toMinute) {
  await page.mouse.move(p.left + fromMinute * p.minute, p.y)
  await page.mouse.down()
  await page.mouse.move(p.left + ((fromMinute + toMinute) / 2) * p.minute, p.y)
  await page.mouse.move(p.left + toMinute * p.minute, p.y)
  await page.mouse.up()
}

/** near fails unless two moments are within half a minute, which is some pixels. */
const near = (seen, wanted, what) => assert.ok(Math.abs(seen - wanted) < 30_000, `${what}: ${new Date(seen).toISOString()}, not ${new Date(wanted).toISOString()}`)

const minutes = (n) => n * 60_000

test('dragging moves the time', async (page) => {
  const p = await show(page)
  await drag(page, p, 20, 30)
  const seen = stretch(page)
  near(seen.from, p.from - minutes(10), 'its begin')
  near(seen.to, p.to - minutes(10), 'its end')
})

test('dragging with shift chooses a stretch', async (page) => {
  const p = await show(page)
  await page.keyboard.down('Shift')
  await drag(page, p, 30, 10)
  await page.keyboard.up('Shift')
  const seen = stretch(page)
  near(seen.from, p.from + minutes(10), 'its begin')
  near(seen.to, p.from + minutes(30), 'its end')
})

test('the wheel zooms where the pointer is, with ctrl alone', async (page) => {
  const p = await show(page)
  await page.mouse.move(p.left + 15 * p.minute, p.y)
  await page.mouse.wheel(0, -100)
  assert.deepEqual(stretch(page), { from: p.from, to: p.to })
  await page.keyboard.down('Control')
  await page.mouse.wheel(0, -100)
  await page.waitForURL((u) => u.searchParams.get('from') !== new Date(p.from).toISOString())
  await page.keyboard.up('Control')
  const seen = stretch(page)
  near(seen.from, p.from + minutes(3), 'its begin') // a fifth of the quarter of an hour before the pointer
  near(seen.to, p.to - minutes(9), 'its end')
  assert.equal(await page.evaluate(() => visualViewport.scale), 1, 'the page itself was zoomed')
})

test('keys and buttons move and zoom', async (page) => {
  const p = await show(page)
  await page.keyboard.press('h')
  near(stretch(page).from, p.from - minutes(15), 'after h')
  await page.keyboard.press('l')
  near(stretch(page).from, p.from, 'after l')
  await page.keyboard.press('+')
  near(stretch(page).from, p.from + minutes(15), 'after +')
  await page.keyboard.press('-')
  near(stretch(page).from, p.from, 'after -')
  await page.getByRole('button', { name: 'Earlier' }).click()
  near(stretch(page).from, p.from - minutes(30), 'after the button')
  await page.getByRole('button', { name: '3h' }).click()
  assert.equal(new URL(page.url()).search, '?last=3h')
})

test('a click shows that moment', async (page) => {
  const p = await show(page)
  const bar = page.locator('rect[data-key*="timeline/held"]').first()
  await bar.click()
  const moment = page.locator('section', { has: page.getByRole('heading', { name: /^At / }) })
  await moment.locator('tbody tr', { hasText: 'timeline/held' }).getByText('ann').waitFor()
  const at = Date.parse(new URL(page.url()).searchParams.get('at'))
  near(at, Date.now(), 'the moment')
  await page.mouse.click(p.left + 5 * p.minute, p.y)
  await moment.getByText('Nothing was held at that moment.').waitFor()
  await page.keyboard.press('Escape')
  await moment.waitFor({ state: 'detached' })
})

test('a server that has just begun is shown as far back as there is something', async (page) => {
  const at = await serve(scratch(), '--min-free', '1MiB')
  await api('POST', '/v1/acquire', { resource: 'first/job', holder: 'ann', ttl: '10m' }, { at })
  await page.goto(at + '/timeline')
  await page.getByRole('button', { name: 'fit', pressed: true }).waitFor()
  await page.locator('svg text.tick', { hasText: /^\d\d:\d\d:\d0$/ }).first().waitFor() // tens of seconds, not minutes
  await page.getByRole('button', { name: '30m' }).click()
  await page.locator('svg text.tick', { hasText: /^\d\d:\d\d:\d0$/ }).first().waitFor({ state: 'detached' })
})
