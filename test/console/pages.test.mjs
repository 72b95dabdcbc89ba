// Every page opens, shows what there is, and can be used by everybody.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { accessible, acquire, api, test, url } from './harness.mjs'

const hostile = 'pages/<b>bold</b>'
const holder = 'ci/<i>page</i>'

// something makes sure that each page has something to show: a hold that is over, and one that was broken.
async function something() {
  const lease = await acquire(hostile, holder)
  await api('POST', '/v1/break', { id: lease.id, period: '0s', by: 'ops', reason: 'a test of pages' })
}

const pages = {
  '/timeline': page => page.locator('svg text', { hasText: 'pages/<b>bold</b>' }).first(),
  '/alarms': page => page.getByRole('heading', { name: 'Needs a look' }),
  '/pools': page => page.locator('section').first(),
  '/audit': page => page.locator('tbody tr', { hasText: 'a test of pages' }).first(),
  '/cluster': page => page.getByText('leader', { exact: true }).first(),
  '/connect': page => page.getByText('leasehold run my/job').first(),
}

for (const [path, shown] of Object.entries(pages)) {
  for (const colorScheme of ['dark', 'light']) {
    test(`${path} shows what there is, and axe-core finds nothing: ${colorScheme}`, { colorScheme }, async (page) => {
      await something()
      await page.goto(url + path)
      await shown(page).waitFor()
      await accessible(page)
      assert.equal(await page.evaluate(() => document.querySelectorAll('td b i, svg b').length), 0, 'a name became markup')
      const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)
      assert.equal(wide, false, 'the page scrolls sideways')
    })
  }
}

test('a break and its reason are in the audit, by the filter in the address', async (page) => {
  await something()
  await page.goto(url + '/audit?verb=break&prefix=' + encodeURIComponent('pages/'))
  const row = page.locator('tbody tr', { hasText: 'a test of pages' }).first()
  await row.waitFor()
  assert.match(await row.innerText(), /break/)
  assert.equal(await page.locator('tbody tr', { hasText: 'acquire' }).count(), 0)
})

test('the audit is exported as it is filtered, whole', async (page) => {
  for (let i = 0; i < 120; i++) await api('POST', '/v1/release', { id: (await acquire('export/' + i, 'exporter')).id }) // more than a page
  await page.goto(url + '/audit?verb=release&prefix=export/')
  await page.locator('tbody tr', { hasText: 'export/119' }).first().waitFor()
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export as NDJSON' }).click()])
  assert.match(file.suggestedFilename(), /^audit-default-.*\.ndjson$/)
  const lines = readFileSync(await file.path(), 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line))
  assert.deepEqual(new Set(lines.map((o) => o.verb)), new Set(['release']))
  assert.deepEqual(new Set(lines.map((o) => o.resource)), new Set(Array.from({ length: 120 }, (_, i) => 'export/' + i)))
})

test('the timeline has a table that says the same, and knows a moment', async (page) => {
  await something()
  await page.goto(url + '/timeline')
  await page.getByText('The same as a table').click()
  await page.locator('tbody tr', { hasText: 'broken by ops' }).first().waitFor()
  await page.getByRole('button', { name: 'by holder' }).click()
  assert.match(page.url(), /by=holder/)
  await page.locator('svg text', { hasText: 'ci/<i>page' }).first().waitFor()
})

test('keys lead from page to page', async (page) => {
  await page.goto(url + '/')
  await page.getByText('reports/nightly').first().waitFor()
  for (const [key, path] of [['t', '/timeline'], ['a', '/audit'], ['c', '/cluster'], ['p', '/pools'], ['n', '/alarms'], ['l', '/']]) {
    await page.keyboard.press('g')
    await page.keyboard.press(key)
    await page.waitForURL(u => new URL(u).pathname === path)
  }
})
