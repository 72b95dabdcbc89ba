// The calendar of reservations: who keeps what and when, by the browser's clock, as bars and as a table; and cancelling.
import assert from 'node:assert/strict'
import { accessible, acquire, api, test, url } from './harness.mjs'

const hour = 3_600_000
const kolkata = 5.5 * hour // of UTC, and its clocks never change

// at is a time of the clocks of Kolkata, so many days from today on.
const at = (days, hours) => new Date(Math.floor((Date.now() + kolkata) / (24 * hour)) * 24 * hour + (days * 24 + hours) * hour - kolkata)
const reserve = (resource, holder, id, more) => api('POST', '/v1/reservations', { resource, holder, id, length: '2h', ...more })
const setUnits = (pool, n) => api('PUT', '/v1/pools/' + pool, { host: 'node1', units: Array.from({ length: n }, (_, i) => ({ name: 'u-' + i, labels: { model: 'H100' } })) })
const row = (page, text) => page.locator('tbody tr', { hasText: text })
const bar = (page, id) => page.locator(`[data-reservation="${id}"]`).first()
const hostile = '<img src=x onerror=alert(1)>'

// seed reserves units of a pool in every state: in use, claimed by one who waits, begun, and planned.
async function seed(pool) {
  await setUnits(pool, 6)
  await acquire(pool, 'in/the-way', { slots: 2 })
  const id = (name) => `${name}-${pool}`
  await reserve(pool, 'train/llm', id('using'), { slots: 2 })
  await acquire(pool, 'train/llm', { reservation: id('using') })
  await reserve(pool, 'eval/big', id('claimed'), { slots: 3 })
  await api('POST', '/v1/sessions', { id: id('session'), ttl: '1h' })
  const left = new AbortController()
  const body = { resource: pool, holder: 'eval/big', id: id('claim'), reservation: id('claimed'), wait: '1h', session: id('session') }
  fetch(url + '/v1/acquire', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body), signal: left.signal }).catch(() => undefined)
  try {
    for (let n = 0; n < 100 && (await api('GET', '/v1/reservations/' + encodeURIComponent(id('claimed')))).state !== 'claimed'; n++) await new Promise((r) => setTimeout(r, 20))
  } finally {
    left.abort() // its place in the queue is the session's
  }
  await reserve(pool, 'ann/demo', id('begun'), { slots: 1 })
  await reserve(pool, hostile, id('planned'), { slots: 2, where: 'model=H100', from: at(2, 10), reason: 'a <b>bold</b> demo' })
  await reserve(pool, 'cron/night', id('night'), { slots: 1, from: at(3, 22), length: '8h' })
}

for (const [name, options] of Object.entries({
  dark: { colorScheme: 'dark' },
  light: { colorScheme: 'light' },
  'on a phone': { colorScheme: 'light', viewport: { width: 390, height: 844 } },
})) {
  test(`the calendar shows who reserved what, when and how far it is: ${name}`, { ...options, timezoneId: 'Asia/Kolkata' }, async (page) => {
    const pool = 'cal/' + name.replaceAll(' ', '-')
    await seed(pool)
    await page.goto(url + '/pools?pool=' + pool)
    await page.getByRole('link', { name: 'Calendar' }).click()
    await row(page, 'train/llm').waitFor()
    assert.match(await row(page, 'train/llm').innerText(), /2 units[^]*in use/)
    assert.match(await row(page, 'eval/big').innerText(), /3 units[^]*claimed/)
    assert.match(await row(page, 'ann/demo').innerText(), /1 unit[^]*begun[^]*to be claimed within 1[0-5]m/)
    assert.match(await row(page, hostile).innerText(), /, 10:00 – 12:00[^]*2h[^]*2 units with model=H100[^]*u-\d, u-\d[^]*planned[^]*a <b>bold<\/b> demo/)
    assert.match(await row(page, 'cron/night').innerText(), /, 22:00 – \w{3} \d+ \w{3}, 06:00[^]*8h/)
    await page.getByText(/Times are those of this browser: Asia.(Kolkata|Calcutta)\./).waitFor()
    assert.equal(await page.locator('[data-day]').count(), 14)
    assert.equal(await page.locator('[data-day] .now').count(), 1, 'where the day has come to')
    assert.equal(await page.locator(`[data-reservation="night-${pool}"]`).count(), 2, 'a night lies in two days')
    assert.match(await bar(page, 'planned-' + pool).locator('title').textContent(), /onerror=alert\(1\)>: 2 units with model=H100, planned/)
    await accessible(page)
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, 'the page scrolls sideways')
  })
}

test('what is reserved appears without being asked for, also where nothing was, and later days are a key away', { timezoneId: 'Asia/Kolkata' }, async (page) => {
  await setUnits('fresh', 2)
  await page.goto(url + '/pools?pool=fresh&view=calendar')
  await page.getByText('Nothing is reserved in these two weeks').waitFor()
  await page.getByText(/leasehold pool reserve fresh -n 1 --at 14:00 --for 2h/).waitFor()
  await accessible(page)
  await reserve('fresh', 'bob', 'soon', { slots: 1, from: at(1, 9) })
  await row(page, 'bob').waitFor()
  await reserve('fresh', 'carol', 'later', { slots: 1, from: at(20, 9) })
  await page.keyboard.press('l')
  await row(page, 'carol').waitFor()
  assert.equal(await row(page, 'bob').count(), 0)
  assert.equal(await page.locator('.now').count(), 0)
  await page.keyboard.press('h')
  await row(page, 'bob').waitFor()
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'iCalendar' }).click()])
  assert.equal(download.suggestedFilename(), 'reservations.ics')
  const text = await (await fetch(download.url())).text()
  assert.match(text, /BEGIN:VEVENT[^]*SUMMARY:fresh: bob[^]*SUMMARY:fresh: carol/)
})

test('one of a series is cancelled by the mouse, and the rest of it by the keyboard alone', { timezoneId: 'Asia/Kolkata' }, async (page) => {
  await setUnits('weekly', 2)
  await reserve('weekly', 'train/daily', 'daily', { slots: 1, every: 'day', at: '09:00', zone: 'Asia/Kolkata' })
  await page.goto(url + '/pools?pool=weekly&view=calendar')
  await row(page, 'every day at 09:00, Asia/Kolkata').first().waitFor()
  const planned = await row(page, 'train/daily').count()
  assert.ok(planned >= 13, `${planned} days are planned`)
  await bar(page, (await api('GET', '/v1/reservations?resource=weekly')).items[1].id).click()
  assert.equal(await page.locator('tbody tr').nth(1).evaluate((e) => e === document.activeElement), true, 'a bar leads to its row')
  await page.locator('tbody tr').nth(1).getByRole('button').click()
  const dialog = page.getByRole('dialog')
  assert.equal(await dialog.getByRole('button', { name: 'Cancel the reservation' }).isDisabled(), true, 'without a reason')
  await dialog.getByLabel('Reason').fill('a holiday')
  await accessible(page)
  await dialog.getByRole('button', { name: 'Cancel the reservation' }).click()
  await page.getByText('The reservation was cancelled.').waitFor()
  await page.getByText(`${planned - 1} reservations`).waitFor()
  for (const key of ['Escape', 'j', '.']) await page.keyboard.press(key)
  await page.keyboard.type('cancel the reservation')
  await page.keyboard.press('Enter')
  await dialog.getByLabel('The whole series').focus()
  await page.keyboard.press('Space')
  await dialog.getByLabel('Reason').focus()
  await page.keyboard.type('nobody trains any more')
  await page.keyboard.press('Enter')
  await page.getByText('Nothing is reserved in these two weeks').waitFor()
  assert.deepEqual((await api('GET', '/v1/series')).items.filter((s) => s.id === 'daily'), [])
  const done = (await api('GET', '/v1/audit?limit=100')).items.filter((o) => JSON.stringify(o).includes('nobody trains any more'))
  assert.ok(done.length > 0, 'the reason is in the journal')
})

test('the details of a resource say what is reserved next, and lead to its calendar', { timezoneId: 'Asia/Kolkata' }, async (page) => {
  await reserve('staging', 'ann', 'demo', { from: at(1, 14), length: '4h', reason: 'demo for Bob' })
  await page.goto(url + '/?open=staging')
  const details = page.getByRole('complementary', { name: 'Details' })
  await details.getByText('Reserved').waitFor()
  assert.match(await details.innerText(), /ann[^]*14:00 – 18:00[^]*all of it[^]*demo for Bob/)
  await accessible(page)
  await details.getByRole('link', { name: 'On the calendar' }).click()
  await row(page, 'demo for Bob').waitFor()
  assert.equal(await page.getByRole('link', { name: 'Units' }).count(), 0, 'it is no pool')
})
