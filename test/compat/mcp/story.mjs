// The story of two agents by the TypeScript SDK, over streamable HTTP and over standard input and output:
//
//     node story.mjs URL LEASEHOLD
import assert from 'node:assert/strict'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const [url, leasehold] = process.argv.slice(2)

const ways = {
  http: (name) => new StreamableHTTPClientTransport(new URL(url + '/mcp'), {
    requestInit: { headers: { 'Leasehold-Agent': name } },
  }),
  stdio: (name) => new StdioClientTransport({
    command: leasehold, args: ['mcp', '--server', url, '--holder', name], stderr: 'inherit',
  }),
}

async function agent(way, name) {
  const client = new Client({ name, version: '1' }, { capabilities: { elicitation: {} } })
  const questions = []
  client.setRequestHandler(ElicitRequestSchema, (request) => {
    questions.push(request.params.message)
    return { action: 'accept', content: { reason: 'a person said so' } }
  })
  await client.connect(ways[way](name))
  return {
    client,
    questions,
    async call(tool, args, options) {
      const result = await client.callTool({ name: tool, arguments: args }, undefined, options)
      return { failed: result.isError === true, ...JSON.parse(result.content[0].text) }
    },
  }
}

for (const way of Object.keys(ways)) {
  const ann = await agent(way, 'ann-' + way), bob = await agent(way, 'bob-' + way)
  const { tools } = await ann.client.listTools()
  assert.deepEqual(tools.map((t) => t.name).sort(),
    ['lease_acquire', 'lease_ask', 'lease_break', 'lease_check', 'lease_list', 'lease_release'])
  assert.equal(tools.find((t) => t.name === 'lease_break').annotations.destructiveHint, true)
  assert.equal(tools.find((t) => t.name === 'lease_list').annotations.readOnlyHint, true)

  const file = 'repo/' + way + ':a.go'
  const first = await ann.call('lease_acquire', { resources: [file], reason: 'fix', request_id: '1' })
  assert.equal(first.status, 'held')
  assert.equal((await ann.call('lease_acquire', { resources: [file], reason: 'fix', request_id: '1' })).id, first.id)

  let notices = 0
  const ticket = await bob.call('lease_acquire', { resources: [file], reason: 'rename', wait_seconds: 6 },
    { onprogress: () => notices++ })
  assert.equal(ticket.status, 'waiting')
  assert.equal(ticket.held_by[0].holder, 'ann-' + way)
  assert.ok(notices > 0, 'no progress was told')
  assert.deepEqual((await bob.call('lease_ask', { resource: file, message: 'please' })).delivered_to, ['ann-' + way])
  assert.equal((await ann.call('lease_check', {})).messages[0].text, 'please')
  assert.deepEqual((await ann.call('lease_release', { ids: [first.id] })).released[0].resources, [file])
  const turn = await bob.call('lease_check', { ids: [ticket.id], wait_seconds: 20 })
  assert.equal(turn.leases[0].status, 'held')
  const late = await ann.call('lease_acquire', { resources: [file], reason: 'fix', request_id: '1' })
  assert.equal(late.failed, true)
  assert.equal(late.error.code, 'lost')
  // Over standard input and output the person is asked; a server without sessions cannot ask clients of this revision.
  const broken = await ann.call('lease_break', { resource: file, reason: 'it is late' })
  assert.equal(broken.holder, 'bob-' + way)
  assert.equal(ann.questions.length, way === 'stdio' ? 1 : 0)
  await bob.call('lease_release', { ids: [ticket.id] })
  await ann.client.close()
  await bob.client.close()
  console.log(way + ' ok')
}
