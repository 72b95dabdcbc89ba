// What every test of the console in a browser has: a page on a real server, and a judge of everything that a page must
// never do, whatever it shows.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { after, before, test as run } from 'node:test'
import { chromium } from 'playwright-core'

/** url is the address of the server, without a slash at its end. */
export const url = process.env.LEASEHOLD_URL
if (!url) throw new Error('run these tests by go test ./test/console')

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** own are the servers that a page may ask: that of all tests, and those that a test starts. */
const own = [url]

let browser
before(async () => {
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] })
})
after(async () => {
  await browser?.close()
  for (const end of ends.reverse()) await end()
})

const ends = []

/** atEnd calls a function when all tests of the file are over. */
export const atEnd = (end) => void ends.push(end)

/** allow lets pages ask another address, such as that of an issuer. */
export const allow = (address) => void own.push(address)

/** scratch returns a directory that is removed in the end. */
export function scratch() {
  const dir = mkdtempSync(join(tmpdir(), 'leasehold-console-'))
  atEnd(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

// The program knows all variables that begin so, and refuses others.
const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('LEASEHOLD_')))

/** leasehold runs a command to its end. */
export const leasehold = (...args) => promisify(execFile)(process.env.LEASEHOLD_BINARY, args, { env })

const servers = new Map()

/** stop kills a server of the test's own, as a power cut does. */
export async function stop(address) {
  const { server, ended } = servers.get(address)
  server.kill('SIGKILL')
  await ended
}

/** serve starts a server of the test's own, and returns its address. */
export async function serve(data, ...args) {
  const server = spawn(process.env.LEASEHOLD_BINARY, ['serve', '--listen', '127.0.0.1:0', '--data', data, ...args], { env })
  const ended = new Promise((resolve) => server.on('exit', resolve))
  atEnd(() => (server.kill('SIGTERM'), ended))
  const address = await new Promise((resolve, reject) => {
    let said = ''
    const hear = (text) => {
      said += text
      const found = /^the console is at (\S+)\/$/m.exec(said)
      if (found) resolve(found[1])
    }
    server.stdout.on('data', hear)
    server.stderr.on('data', hear)
    server.on('exit', () => reject(new Error('the server does not start: ' + said)))
  })
  allow(address)
  servers.set(address, { server, ended })
  return address
}

/**
 * test runs a test with a page of its own. It fails if the page broke its content security policy, had an error, or
 * asked another server for something. options are those of a Playwright context, such as colorScheme or viewport.
 */
export function test(name, options, body) {
  if (!body) [options, body] = [{}, options]
  run(name, { timeout: 60_000 }, async () => {
    const context = await browser.newContext({ viewport: { width: 1440, height: 920 }, ...options })
    const faults = []
    context.on('page', (page) => watch(page, faults))
    try {
      await body(await context.newPage(), faults)
    } finally {
      await context.close()
    }
    assert.deepEqual(faults, [], 'what the page must not do')
  })
}

function watch(page, faults) {
  page.setDefaultTimeout(15_000)
  page.on('pageerror', (error) => faults.push('error: ' + error.message))
  page.on('console', (m) => {
    // What the server refuses is shown on the page; the browser writes a line about it as well.
    if (m.type() === 'error' && !m.text().startsWith('Failed to load resource')) faults.push('console: ' + m.text())
  })
  page.on('request', (request) => {
    if (!own.some((at) => request.url().startsWith(at + '/')) && !request.url().startsWith('data:')) faults.push('asked ' + request.url())
  })
  page.on('dialog', (dialog) => {
    faults.push('dialog: ' + dialog.message())
    dialog.dismiss()
  })
}

/** api asks the server as a program does, and returns what it answers. */
export async function api(method, path, body, { at = url, token, type = 'application/json' } = {}) {
  const answer = await fetch(at + path, {
    method,
    headers: { ...(body === undefined ? {} : { 'Content-Type': type }), ...(token ? { Authorization: 'Bearer ' + token } : {}) },
    body: body === undefined ? undefined : JSON.stringify(body),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return text && JSON.parse(text)
}

/** acquire takes a lease; more are further fields of the request. */
export const acquire = (resource, holder, more = {}) => api('POST', '/v1/acquire', { resource, holder, ttl: '10m', ...more })

/** accessible fails if axe-core finds anything on the page. */
export async function accessible(page) {
  // Half-way through a transition, colours are not those that a person reads.
  await page.waitForFunction(() => document.getAnimations().every((a) => a.playState !== 'running' || a.effect.getTiming().iterations === Infinity))
  await page.evaluate(axe)
  const { violations } = await page.evaluate(() => globalThis.axe.run(document))
  const found = violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.target.join(' ')}: ${n.failureSummary}`))
  assert.deepEqual(found, [], 'what axe-core finds')
}
