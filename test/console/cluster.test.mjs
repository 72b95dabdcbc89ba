// The console is the same on every server of a cluster, and says when too few of them are left.
import assert from 'node:assert/strict'
import net from 'node:net'
import { before } from 'node:test'
import { accessible, api, scratch, serve, stop, test } from './harness.mjs'

/** freePort returns a port that nobody listened at a moment ago. */
async function freePort() {
  const server = net.createServer()
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

const names = ['n1', 'n2', 'n3']
const data = {}
const at = {}
let flags

const start = async (name) => void (at[name] = await serve(data[name], '--name', name, '--insecure', '--min-free', '1MiB', ...flags))

before(async () => {
  const peers = []
  for (const name of names) {
    data[name] = scratch()
    peers.push(`${name}=127.0.0.1:${await freePort()}`)
  }
  flags = ['--initial-cluster', peers.join(',')]
  await Promise.all(names.map(start))
})

/** leader returns who leads, as soon as a majority confirms it. */
async function leader(asked) {
  for (;;) {
    const cluster = await api('GET', '/v1/cluster', undefined, { at: at[asked] }).catch(() => undefined)
    if (cluster?.confirmed && cluster.leader) return cluster.leader
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

test('a server that follows shows what happens, and takes orders', async (page) => {
  const leads = await leader('n1')
  const follower = names.find((n) => n !== leads)
  await page.goto(at[follower] + '/')
  await page.getByText(`leader ${leads}`).waitFor()
  await page.getByText('3 / 3').waitFor()
  await api('POST', '/v1/acquire', { resource: 'shared/job', holder: 'ann', id: 'shared', ttl: '10m' }, { at: at[leads] })
  await page.locator('tbody tr', { hasText: 'shared/job' }).click()
  await page.getByRole('button', { name: 'Break…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Now').check()
  await dialog.getByLabel('Reason').fill('by a follower')
  await dialog.getByLabel('to confirm').fill('job')
  await dialog.getByRole('button', { name: 'Break', exact: true }).click()
  await dialog.waitFor({ state: 'detached' })
  const [last] = (await api('GET', '/v1/audit?verb=break&resource=shared/job', undefined, { at: at[leads] })).items
  assert.equal(last.reason, 'by a follower')
  await page.goto(at[follower] + '/cluster')
  const row = (name) => page.locator('tr', { has: page.getByText(name, { exact: true }) })
  await row(leads).getByText('leader', { exact: true }).waitFor()
  await row(follower).getByText('(this one)').waitFor()
  await row(follower).getByText('Nothing: the others have a majority.').waitFor()
  await accessible(page)
})

test('without a majority the console says so, and what to do, until there is one again', async (page) => {
  const stays = names.find((n) => n !== 'n1')
  const go = names.filter((n) => n !== stays)
  await leader(stays)
  await page.goto(at[stays] + '/')
  await page.getByText('3 / 3').waitFor()
  for (const name of go) await stop(at[name])
  const banner = page.getByRole('status').getByText('nothing is granted or renewed')
  await banner.waitFor({ timeout: 40_000 })
  await page.getByRole('status').getByText(`Not reachable: ${go.join(', ')}. Start them`).waitFor({ timeout: 40_000 })
  await accessible(page)
  await start(go[0])
  await banner.waitFor({ state: 'detached', timeout: 40_000 })
})
