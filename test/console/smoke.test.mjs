// The console opens, says what is so, follows what happens, and takes names for nothing but names.
import assert from 'node:assert/strict'
import { accessible, acquire, api, test, url } from './harness.mjs'

test('the page opens and shows the leases', async (page) => {
  const answer = await page.goto(url + '/')
  assert.match(answer.headers()['content-security-policy'], /default-src 'none'/)
  await page.getByText('reports/nightly').first().waitFor()
  await page.getByText('ci/build-7').first().waitFor()
})

test('what happens is shown without being asked for', async (page) => {
  await page.goto(url + '/')
  await page.getByText('reports/nightly').first().waitFor()
  const lease = await acquire('live/appears', 'newcomer')
  await page.getByText('live/appears').first().waitFor()
  await api('POST', '/v1/release', { id: lease.id })
  // The resource may stay in sight for a while; its holder may not.
  await page.locator('tbody tr', { hasText: 'live/appears' }).filter({ hasText: 'newcomer' }).waitFor({ state: 'detached' })
})

test('hostile names are names', async (page) => {
  const script = 'hostile/<script>alert(1)</script>'
  const image = '<img src=x onerror=alert(2)>'
  const rtl = 'hostile/\u202Egpj.exe'
  const long = 'hostile/' + 'x'.repeat(1016)
  for (const name of [script, rtl, long]) await acquire(name, image)
  await page.goto(url + '/')
  await page.getByText('<script>alert(1)</script>').first().waitFor()
  await page.getByText(image).first().waitFor()
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)
  assert.equal(wide, false, 'a long name makes the page scroll sideways')
  assert.equal(await page.evaluate(() => document.querySelectorAll('img[src="x"], table script').length), 0)
  // An override of the direction must not reach beyond the name.
  const loose = await page.evaluate(() => {
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    const found = []
    while (walk.nextNode()) {
      const at = walk.currentNode
      if (at.data.includes('\u202E') && !at.parentElement.closest('bdi, [dir=auto]')) found.push(at.data)
    }
    return found
  })
  assert.deepEqual(loose, [])
})

test('a filter in the address is applied', async (page) => {
  await page.goto(url + '/?q=' + encodeURIComponent('holder:ci/*'))
  await page.getByText('reports/nightly').first().waitFor()
  assert.equal(await page.locator('tbody tr', { hasText: 'db/migrate' }).count(), 0)
})

for (const colorScheme of ['dark', 'light']) {
  test(`axe-core finds nothing: ${colorScheme}`, { colorScheme }, async (page) => {
    await page.goto(url + '/')
    await page.getByText('reports/nightly').first().waitFor()
    await accessible(page)
  })
}
