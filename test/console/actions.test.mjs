// What people do in the console: break by the keyboard alone, ask, end one of several holders, compare versions, and
// look at another namespace.
import assert from 'node:assert/strict'
import { accessible, acquire, api, test, url } from './harness.mjs'

const panel = (page) => page.getByRole('complementary', { name: 'Details' })

test('a lease is broken by the keyboard alone', async (page) => {
  await acquire('keys/first', 'ann')
  await acquire('keys/second', 'bob', { reason: 'a long job' })
  await page.goto(url + '/?sort=resource')
  await page.getByText('keys/second').first().waitFor()
  const press = (...keys) => keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve())
  await press('/')
  await page.keyboard.type('resource:keys/*')
  await page.locator('tbody tr', { hasText: 'reports/nightly' }).waitFor({ state: 'detached' })
  await press('Escape', 'j', 'j', 'k', 'j', 'Enter')
  await panel(page).getByText('a long job').waitFor()
  assert.match(page.url(), /open=keys\/second/)
  await panel(page).getByRole('button', { name: 'Break…' }).waitFor()
  await press('.')
  await page.keyboard.type('break')
  await press('Enter')
  const dialog = page.getByRole('dialog')
  await dialog.getByText('loses').waitFor()
  assert.match(await dialog.innerText(), /bob/)
  assert.equal(await dialog.getByRole('button', { name: 'Break', exact: true }).isDisabled(), true, 'without a reason')
  await dialog.getByLabel('Now').focus()
  await press('Space', 'Tab')
  await page.keyboard.type('by the keyboard')
  await press('Tab')
  await page.keyboard.type('second')
  await press('Enter')
  await dialog.waitFor({ state: 'detached' })
  await panel(page).getByText('broken').first().waitFor()
  const [last] = (await api('GET', '/v1/audit?verb=break&resource=keys/second')).items
  assert.equal(last.reason, 'by the keyboard')
  assert.equal((await api('GET', '/v1/resources/keys/first')).state, 'leased')
  await press('.')
  await page.getByText('There is nothing that you can do with keys/second now.').waitFor()
  await press('Escape', 'Escape')
  await panel(page).waitFor({ state: 'detached' })
})

test('the palette, the help and their keys', async (page) => {
  await page.goto(url + '/')
  await page.getByText('reports/nightly').first().waitFor()
  await page.keyboard.press('?')
  await page.getByRole('dialog', { name: 'Keys and filters' }).waitFor()
  await accessible(page)
  await page.keyboard.press('Escape')
  await page.keyboard.press('Control+k')
  await page.getByRole('dialog', { name: 'Jump to' }).waitFor()
  await accessible(page)
  await page.keyboard.type('db/mig')
  await page.keyboard.press('Enter')
  await panel(page).getByText('ci/deploy-0').first().waitFor()
  await accessible(page)
})

test('a holder is asked to release', async (page) => {
  await acquire('ask/me', 'slow/holder')
  await page.goto(url + '/?open=ask/me')
  await panel(page).getByRole('button', { name: 'Ask to release' }).click()
  await page.getByLabel('Message').fill('five minutes, please')
  await accessible(page)
  await page.getByRole('button', { name: 'Ask', exact: true }).click()
  await page.getByText('Asked slow/holder to release.').waitFor()
  const events = (await api('GET', '/v1/history?resource=ask/me')).items
  assert.ok(events.some((e) => e.kind === 'asked' && e.reason === 'five minutes, please'), JSON.stringify(events))
})

test('of several holders one is ended alone', async (page) => {
  await api('PUT', '/v1/definitions/one/pool', { units: ['a', 'b', 'c'] })
  const first = await acquire('one/pool', 'train/first', { slots: 1 })
  const second = await acquire('one/pool', 'train/second', { slots: 1 })
  await page.goto(url + '/?open=one/pool')
  const holder = panel(page).locator('dl', { hasText: 'train/second' }).first()
  await holder.getByRole('button', { name: 'Break…' }).click()
  const dialog = page.getByRole('dialog')
  assert.doesNotMatch(await dialog.innerText(), /train\/first/)
  await dialog.getByLabel('Now').check()
  await dialog.getByLabel('Reason').fill('its node is gone')
  await dialog.getByLabel('to confirm').fill('pool')
  await accessible(page)
  await dialog.getByRole('button', { name: 'Break', exact: true }).click()
  await dialog.waitFor({ state: 'detached' })
  await panel(page).locator('dl', { hasText: second.id }).first().waitFor({ state: 'detached' })
  const left = (await api('GET', '/v1/resources/one/pool')).holders
  assert.deepEqual(left.map((l) => l.id), [first.id])
})

test('versions of a Terraform state are compared', async (page) => {
  const state = (serial, type) => ({ version: 4, serial, lineage: 'x', resources: [{ type, name: 'main', mode: 'managed', instances: [] }] })
  await api('POST', '/terraform/network', state(1, 'aws_vpc'))
  await api('POST', '/terraform/network', state(2, 'aws_subnet'))
  await acquire('terraform/network', 'ci/apply').catch(() => undefined) // the panel opens without a holder, too
  await page.goto(url + '/?open=terraform/network')
  await panel(page).getByText('2 versions').waitFor()
  await panel(page).getByRole('button', { name: /^v2/ }).click()
  const change = panel(page).getByLabel('What version 2 changed')
  await change.waitFor()
  const text = await change.innerText()
  assert.match(text, /^-.*aws_vpc/m)
  assert.match(text, /^\+.*aws_subnet/m)
  await accessible(page)
})

test('another namespace is chosen', async (page) => {
  await api('POST', '/v1/acquire?namespace=team-a', { resource: 'only/here', holder: 'ann', ttl: '10m' })
  await page.goto(url + '/')
  await page.getByText('reports/nightly').first().waitFor()
  await page.keyboard.press('n')
  await page.getByRole('dialog', { name: 'Namespaces' }).waitFor()
  await page.getByRole('option', { name: 'team-a' }).waitFor()
  await accessible(page)
  await page.keyboard.type('team')
  await page.keyboard.press('Enter')
  await page.getByText('only/here').first().waitFor()
  assert.match(page.url(), /ns=team-a/)
  assert.equal(await page.getByText('reports/nightly').count(), 0)
  await page.getByRole('link', { name: 'Audit' }).click()
  assert.match(page.url(), /audit\?ns=team-a/)
})

test('motion is reduced for those who ask for it', { reducedMotion: 'reduce' }, async (page) => {
  await page.goto(url + '/')
  await page.getByText('reports/nightly').first().waitFor()
  const longest = await page.evaluate(() => Math.max(0, ...[...document.querySelectorAll('*')].flatMap((e) => {
    const style = getComputedStyle(e)
    return [style.transitionDuration, style.animationDuration].flatMap((d) => d.split(',').map(parseFloat))
  })))
  assert.ok(longest < 0.001, `something moves for ${longest} s`)
})

for (const [name, viewport] of [['on a phone', { width: 390, height: 844 }], ['at 200 % zoom', { width: 720, height: 460 }]]) {
  test(`no page scrolls sideways ${name}`, { viewport }, async (page) => {
    for (const path of ['/?open=db/migrate', '/timeline', '/alarms', '/pools', '/audit', '/cluster', '/connect']) {
      await page.goto(url + path)
      await page.locator('main').getByText(/\w/).first().waitFor()
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)
      assert.equal(wide, 0, `${path} scrolls sideways`)
    }
  })
}
