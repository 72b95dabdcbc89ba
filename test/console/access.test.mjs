// Where there are rules, people sign in, and are offered what they may do.
import assert from 'node:assert/strict'
import { before } from 'node:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { accessible, api, scratch, serve, test } from './harness.mjs'
import { provide } from './issuer.mjs'

let at, root, viewer, member

before(async () => {
  const data = scratch()
  at = await serve(data, '--access', '--min-free', '1MiB', '--console-sign-in', 'corp=console')
  root = readFileSync(join(data, 'admin-token'), 'utf8').trim()
  const admin = { at, token: root }
  await api('PUT', '/v1/access/issuers/corp', { url: await provide('ann'), audiences: ['console'] }, admin)
  await api('PUT', '/v1/access/bindings/viewers', { role: 'viewer', group: 'viewers' }, admin)
  await api('PUT', '/v1/access/bindings/ann', { role: 'operator', principal: 'corp:ann' }, admin)
  viewer = (await api('POST', '/v1/access/tokens', { principal: 'carol', groups: ['viewers'] }, admin)).secret
  await api('PUT', '/v1/access/bindings/members', { role: 'member', group: 'members' }, admin)
  member = (await api('POST', '/v1/access/tokens', { principal: 'erin', groups: ['members'] }, admin)).secret
  await api('PUT', '/v1/definitions/gpu/pool', { units: ['a', 'b'] }, admin)
  for (const id of ['1', '2']) {
    await api('POST', '/v1/acquire', { resource: 'gpu/pool', holder: 'train/' + id, id, slots: 1, ttl: '10m' }, admin)
  }
})

async function signIn(page, token) {
  await page.goto(at + '/?open=gpu/pool')
  await page.waitForURL(/\/signin/)
  await page.getByLabel('Token').fill(token)
  await page.getByRole('button', { name: 'Sign in with a token' }).click()
  await page.getByText('train/1').first().waitFor()
}

const sessionOf = async (page) => (await page.context().cookies()).find((c) => c.name === 'leasehold_session')

for (const colorScheme of ['dark', 'light']) {
  test(`the page to sign in is for everybody: ${colorScheme}`, { colorScheme }, async (page) => {
    await page.goto(at + '/signin')
    await page.getByRole('button', { name: 'Sign in with corp' }).waitFor()
    await accessible(page)
  })
}

test('a wrong token is refused in words', async (page) => {
  await page.goto(at + '/')
  await page.waitForURL(/\/signin/)
  await page.getByLabel('Token').fill('lh_' + 'A'.repeat(43))
  await page.getByRole('button', { name: 'Sign in with a token' }).click()
  await page.getByRole('alert').getByText('revoked').waitFor()
  assert.equal(await sessionOf(page), undefined)
})

test('with a token one sees what one may, and is told why no more is offered', async (page) => {
  await signIn(page, viewer)
  const details = page.getByRole('complementary', { name: 'Details' })
  await details.getByText('carol may not ask or break here').waitFor()
  assert.equal(await details.getByRole('button', { name: /Break|Ask/ }).count(), 0)
  const cookie = await sessionOf(page)
  assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, 'Strict'])
  assert.equal(await page.evaluate(() => document.cookie), '')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.waitForURL(/\/signin/)
  assert.equal(await sessionOf(page), undefined)
})

test('who may break its own leases only is offered those alone, and told why', async (page) => {
  const hers = { at, token: member }
  await api('PUT', '/v1/definitions/own/pool', { units: ['a', 'b'] }, { at, token: root })
  await api('POST', '/v1/acquire', { resource: 'own/pool', holder: 'train/root', slots: 1, ttl: '10m' }, { at, token: root })
  await api('POST', '/v1/acquire', { resource: 'own/pool', holder: 'train/erin', slots: 1, ttl: '10m' }, hers)
  await api('POST', '/v1/acquire', { resource: 'own/alone', holder: 'erin@laptop', ttl: '10m' }, hers)
  await signIn(page, member)
  const details = page.getByRole('complementary', { name: 'Details' })
  await details.getByText('erin may break only its own leases: these are somebody else’s').waitFor()
  assert.equal(await details.getByRole('button', { name: /Break/ }).count(), 0)
  await page.goto(at + '/?open=own/alone')
  await details.getByRole('button', { name: 'Break…' }).waitFor()
  await page.goto(at + '/?open=own/pool')
  await details.getByText('1 of these is somebody else’s').waitFor()
  await details.locator('dl', { hasText: 'train/erin' }).first().getByRole('button', { name: 'Break…' }).waitFor()
  assert.equal(await details.getByRole('button', { name: /Break/ }).count(), 1)
})

test('on the calendar a member is offered to cancel what is reserved in its own name, and nothing else', async (page) => {
  const from = new Date(Date.now() + 3_600_000)
  await api('PUT', '/v1/definitions/own/lab', { capacity: 2 }, { at, token: root })
  await api('POST', '/v1/reservations', { resource: 'own/lab', holder: 'root', slots: 1, from, length: '1h' }, { at, token: root })
  await api('POST', '/v1/reservations', { resource: 'own/lab', holder: 'erin', slots: 1, from, length: '1h' }, { at, token: member })
  await signIn(page, member)
  await page.goto(at + '/pools?pool=own/lab&view=calendar')
  await page.getByRole('row', { name: 'root' }).waitFor()
  await page.getByRole('button', { name: 'Cancel… the reservation of erin' }).click()
  assert.equal(await page.getByRole('button', { name: 'Cancel… the reservation of root' }).count(), 0)
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Reason').fill('the demo is off')
  await dialog.getByRole('button', { name: 'Cancel the reservation' }).click()
  await page.getByText('1 reservation', { exact: true }).waitFor()
  assert.deepEqual((await api('GET', '/v1/reservations?resource=own/lab', undefined, { at, token: root })).items.map((r) => r.holder), ['root'])
})

test('with an OpenID provider one comes back to where one was, and may do what the rules say', async (page) => {
  await page.goto(at + '/?open=gpu/pool')
  await page.waitForURL(/\/signin/)
  await page.getByRole('button', { name: 'Sign in with corp' }).click()
  await page.getByText('train/1').first().waitFor()
  assert.equal(page.url(), at + '/?open=gpu/pool')
  await page.getByText('corp:ann').first().waitFor()
  const cookie = await sessionOf(page)
  assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, 'Strict'])
  assert.ok(cookie.expires <= Date.now() / 1000 + 600, 'it ends with the ID token')
  const details = page.getByRole('complementary', { name: 'Details' })
  await details.getByRole('button', { name: 'Break…' }).first().waitFor()
  assert.equal(await details.getByRole('button', { name: 'Break…' }).count(), 2)
  await page.reload()
  await page.getByText('corp:ann').first().waitFor()
})

test('a link cannot end a sign-in that did not begin here', async (page) => {
  await page.goto(at + '/console/oidc/corp?code=stolen&state=made-up')
  await page.waitForURL(/\/signin\?failed=visit/)
  await page.getByText('did not begin in this browser').waitFor()
  assert.equal(await sessionOf(page), undefined)
})

test('a revoked token ends the session', async (page) => {
  const admin = { at, token: root }
  const made = await api('POST', '/v1/access/tokens', { principal: 'dave', groups: ['viewers'] }, admin)
  await signIn(page, made.secret)
  await api('DELETE', '/v1/access/tokens/' + made.token.id, undefined, admin)
  await page.waitForURL(/\/signin/)
})
