// Pools over hosts: cards with who has which unit, why others are not granted, who waits for what; draining; and ten
// thousand units.
import assert from 'node:assert/strict'
import { accessible, acquire, api, test, url } from './harness.mjs'

const units = (host, n, labels, first = 0) => Array.from({ length: n }, (_, i) => ({ name: `${host}-${String(first + i).padStart(4, '0')}`, labels }))
const setUnits = (pool, host, list) => api('PUT', '/v1/pools/' + pool, { host, units: list })
const card = (page, name) => page.locator(`[data-unit="${name}"]`)

// seed makes a pool of two hosts: somebody has two H100, one unit is unfit, one is drained, and somebody waits.
async function seed(pool) {
  await setUnits(pool, 'node1', units('a', 3, { model: 'H100', memory: '80' }))
  await setUnits(pool, 'node2', [...units('b', 2, { model: 'A100' }), { name: 'b-bad', unfit: 'it vanished from nvidia-smi' }])
  await api('PATCH', '/v1/pools/' + pool, { units: ['b-0001'], why: 'its fan is <b>loud</b>', by: 'ops' })
  await acquire(pool, 'train/llm', { slots: 2, where: 'model=H100', reason: 'torchrun train.py', labels: { team: 'nlp' } })
  const session = await api('POST', '/v1/sessions', { ttl: '1h' })
  // The request is given up when it waits: its place is the session's.
  const left = new AbortController()
  const body = { resource: pool, holder: 'eval/big', id: 'waits-' + pool, slots: 3, where: 'model=H100', wait: '1h', session: session.id }
  fetch(url + '/v1/acquire', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body), signal: left.signal }).catch(() => undefined)
  for (let n = 0; n < 100 && (await api('GET', '/v1/pools/' + pool)).waiting === 0; n++) await new Promise((r) => setTimeout(r, 20))
  left.abort()
}

for (const [name, options] of Object.entries({
  dark: { colorScheme: 'dark' },
  light: { colorScheme: 'light' },
  'on a phone': { colorScheme: 'light', viewport: { width: 390, height: 844 } },
})) {
  test(`cards show who has which unit, what is out and why, and who waits for what: ${name}`, options, async (page) => {
    const pool = 'cards/' + name.replaceAll(' ', '-')
    await seed(pool)
    await page.goto(url + '/pools')
    await page.getByRole('link', { name: pool }).click()
    await card(page, 'a-0000').getByText('train/llm').waitFor()
    const held = await card(page, 'a-0000').innerText()
    assert.match(held, /H100/)
    assert.match(held, /for \d+/)
    assert.match(held, /until \d/)
    assert.match(held, /torchrun train\.py/)
    assert.match(held, /no reports/, 'silence is not idle')
    assert.match(await card(page, 'a-0002').innerText(), /free/)
    await page.keyboard.press('End')
    await card(page, 'b-bad').getByText('it vanished from nvidia-smi').waitFor()
    assert.match(await card(page, 'b-0001').innerText(), /drained[^]*its fan is <b>loud<\/b>/)
    await accessible(page)
    await page.keyboard.press('Home')
    await card(page, 'a-0000').waitFor()
    assert.match(await page.getByLabel('Queue').innerText(), /eval\/big[^]*3 units with model=H100[^]*kept for it, 1 of 3 free/)
    await accessible(page)
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
    assert.equal(wide, 0, 'the page scrolls sideways')
  })
}

test('a unit is drained and resumed, by the mouse and by the keyboard alone', async (page) => {
  await setUnits('drains', 'node1', units('d', 3))
  await page.goto(url + '/pools?pool=drains')
  await page.getByRole('button', { name: 'Drain d-0001…' }).click()
  const dialog = page.getByRole('dialog')
  assert.equal(await dialog.getByRole('button', { name: 'Drain', exact: true }).isDisabled(), true, 'without a reason')
  await dialog.getByLabel('Reason').fill('new thermal paste')
  await accessible(page)
  await dialog.getByRole('button', { name: 'Drain', exact: true }).click()
  await card(page, 'd-0001').getByText('new thermal paste').waitFor()
  const unit = async () => (await api('GET', '/v1/pools/drains')).units[1]
  assert.equal((await unit()).why, 'new thermal paste')
  for (const key of ['j', 'j', '.']) await page.keyboard.press(key)
  await page.keyboard.type('resume')
  await page.keyboard.press('Enter')
  await dialog.getByText('It may be granted again').waitFor()
  await dialog.getByRole('button', { name: 'Resume' }).focus()
  await page.keyboard.press('Enter')
  await card(page, 'd-0001').locator('.state', { hasText: 'free' }).waitFor()
  assert.equal((await unit()).state, 'free')
})

test('what happens to a pool is shown without being asked for', async (page) => {
  await setUnits('lively', 'node1', units('l', 2))
  await page.goto(url + '/pools?pool=lively')
  await card(page, 'l-0001').locator('.state', { hasText: 'free' }).waitFor()
  const lease = await acquire('lively', 'job/7', { units: ['l-0001'], slots: 1 })
  await card(page, 'l-0001').getByText('job/7').waitFor()
  await setUnits('lively', 'node2', units('m', 1))
  await card(page, 'm-0000').waitFor()
  await api('POST', '/v1/release', { id: lease.id })
  await card(page, 'l-0001').getByText('last: job/7').waitFor()
})

test('cards show how units are used, where their host reports it, and who uses one without a lease', async (page) => {
  await setUnits('used', 'node1', units('u', 4))
  const lease = await acquire('used', 'train/busy', { units: ['u-0000'], slots: 1 })
  await api('POST', '/v1/pools/used', { host: 'node1', units: [
    { name: 'u-0000', percent: 87, memory_mib: 62464, processes: [{ pid: 1, user: 'ann', name: 'python', lease: lease.id }] },
    { name: 'u-0001', percent: 12, memory_mib: 300, processes: [{ pid: 4711, user: 'bob', name: 'python' }] },
    { name: 'u-0002', memory_mib: 0 },
    { name: 'u-0003', percent: 0, memory_mib: 0 },
  ] })
  await page.goto(url + '/pools?pool=used')
  await card(page, 'u-0000').getByText('87 %').waitFor()
  assert.match(await card(page, 'u-0000').innerText(), /train\/busy[^]*61 GiB/)
  assert.match(await card(page, 'u-0001').innerText(), /taken[^]*process 4711 of bob/)
  assert.match(await card(page, 'u-0002').innerText(), /use not known/)
  assert.match(await card(page, 'u-0003').innerText(), /free[^]*0 %/)
  await accessible(page)
})

for (const [name, options] of Object.entries({ dark: { colorScheme: 'dark' }, 'on a phone': { colorScheme: 'light', viewport: { width: 390, height: 844 } } })) {
  test(`the report shows who held how much, and what nobody reported: ${name}`, options, async (page) => {
    const pool = 'told/' + name.replaceAll(' ', '-')
    await setUnits(pool, 'node1', units('r', 2))
    const lease = await acquire(pool, 'train/told', { slots: 2, labels: { team: 'nlp' } })
    await api('POST', '/v1/release', { id: lease.id })
    await page.goto(url + `/pools?pool=${pool}`)
    await page.getByRole('link', { name: 'Report' }).click()
    const row = page.locator('tbody tr', { hasText: 'train/told' })
    await row.waitFor()
    assert.match(await row.innerText(), /0\.0\s+–\s+–\s+–\s+0\.0\s+1/)
    await page.getByText('use not reported').waitFor()
    await accessible(page)
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, 'the page scrolls sideways')
    await page.goto(url + `/pools?pool=${pool}&view=report&by=label:team`)
    await page.locator('tbody tr', { hasText: 'nlp' }).waitFor()
  })
}

test('ten thousand units are scrolled, filtered and kept up to date', async (page) => {
  for (let h = 0; h < 20; h++) await setUnits('huge', 'node' + String(h).padStart(2, '0'), units('h' + String(h).padStart(2, '0'), 500, { model: h % 2 ? 'A100' : 'H100' }))
  await page.goto(url + '/pools?pool=huge')
  await page.getByText('free of 10,000 units').waitFor()
  await page.getByText('reading…').waitFor({ state: 'detached' })
  const inDocument = () => page.evaluate(() => document.querySelectorAll('[data-unit]').length)
  assert.ok((await inDocument()) < 150, 'only what is near the window is in the document')
  await page.keyboard.press('End')
  await card(page, 'h19-0499').waitFor()
  assert.ok((await inDocument()) < 150)
  await acquire('huge', 'last/one', { units: ['h19-0499'], slots: 1 })
  await card(page, 'h19-0499').getByText('last/one').waitFor()
  await page.keyboard.press('/')
  await page.keyboard.type('last/one')
  await page.getByText('1 of 10,000 units').waitFor()
  assert.equal(await inDocument(), 1)
  await page.keyboard.press('Escape')
  await page.goto(url + '/pools?pool=huge&q=node07+0123')
  await card(page, 'h07-0123').waitFor()
})
