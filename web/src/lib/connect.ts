// What to paste to reach this server with each tool.

export interface Tool {
  id: string
  name: string
  what: string
  text: (place: Place) => string
}

export interface Place {
  origin: string
  host: string // with the port
  namespace: string
  access: boolean
}

const lines = (...all: (string | false)[]): string => all.filter(l => l !== false).join('\n')
const port = (host: string): string => /:(\d+)$/.exec(host)?.[1] ?? '443'
const name = (host: string): string => host.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
const named = (p: Place): boolean => p.namespace !== 'default'
const token = (p: Place): string | false => p.access && 'export LEASEHOLD_TOKEN_FILE=~/.leasehold-token'

export const tools: Tool[] = [
  {
    id: 'cli', name: 'Command line', what: 'Run a command while you hold a lease; it is stopped before the lease can be anybody else’s.',
    text: p => lines(
      `export LEASEHOLD_SERVER=${p.origin}`, named(p) && `export LEASEHOLD_NAMESPACE=${p.namespace}`, p.access && 'leasehold login',
      'leasehold run my/job -- ./job.sh', 'leasehold list',
    ),
  },
  {
    id: 'go', name: 'Go', what: 'A hold renews itself, ends its context when it is lost, and carries a fencing token.',
    text: p => lines(
      `c, err := client.Dial(ctx, client.Config{Servers: []string{"${p.origin}"}${named(p) ? `, Namespace: "${p.namespace}"` : ''}})`,
      'err = c.Do(ctx, "my/job", func(ctx context.Context, h *client.Hold) error {', '\treturn work(ctx, h.Pass())', '}, client.TTL(30*time.Second), client.Wait(5*time.Minute))',
    ),
  },
  {
    id: 'curl', name: 'curl', what: 'The HTTP API: JSON in and out.',
    text: p => {
      const auth = p.access ? ' -H "Authorization: Bearer $LEASEHOLD_TOKEN"' : ''
      const q = named(p) ? `?namespace=${encodeURIComponent(p.namespace)}` : ''
      return lines(
        `curl${auth} ${p.origin}/v1/acquire${q} -d '{"resource":"my/job","holder":"me","ttl":"1m"}'`,
        `curl${auth} ${p.origin}/v1/renew${q} -d '{"id":"THE-ID"}'`,
        `curl${auth} ${p.origin}/v1/release${q} -d '{"id":"THE-ID"}'`,
      )
    },
  },
  {
    id: 'terraform', name: 'Terraform', what: 'The http backend, unmodified: states are kept and locked here.',
    text: p => {
      const at = `${p.origin}/terraform/prod/network`
      const q = named(p) ? `namespace=${encodeURIComponent(p.namespace)}` : ''
      return lines(
        'terraform {', '  backend "http" {', `    address        = "${at}${q && '?' + q}"`, `    lock_address   = "${at}?${q && q + '&'}wait=10m0s"`,
        `    unlock_address = "${at}${q && '?' + q}"`, '  }', '}', p.access && '# TF_HTTP_USERNAME=ci TF_HTTP_PASSWORD=lh_… in the environment',
      )
    },
  },
  {
    id: 'azurerm', name: 'Terraform azurerm', what: 'The azurerm backend and Azure’s SDKs, on the Azure door of a server that was started with it.',
    text: p => lines('leasehold azure account create prod   # on the server', `leasehold terraform config --azurerm demo.tfstate --account prod --server ${p.origin} > backend.tf`),
  },
  {
    id: 'redis', name: 'Redis clients', what: 'RESP on the same port: redis-cli, go-redis, redis-py, ioredis, and any other.',
    text: p => lines(
      `redis-cli -h ${name(p.host)} -p ${port(p.host)}${p.origin.startsWith('https') ? ' --tls' : ''}${p.access ? ' --askpass' : ''}`,
      `LH.ACQUIRE my/job HOLDER me TTL 1m${named(p) ? ` NAMESPACE ${p.namespace}` : ''}`, 'LH.RENEW THE-ID', 'LH.RELEASE THE-ID',
    ),
  },
  {
    id: 'env', name: 'Environment', what: 'For a container or a unit file: every client of ours reads these.',
    text: p => lines(`export LEASEHOLD_SERVER=${p.origin}`, `export LEASEHOLD_NAMESPACE=${p.namespace}`, token(p)),
  },
]
