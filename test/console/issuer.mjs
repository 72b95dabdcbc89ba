// An OpenID provider that signs a person in at once, by the authorization code flow with PKCE.
import { createHash, generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import http from 'node:http'
import { allow, atEnd } from './harness.mjs'

const base64 = (value) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

/** provide starts an issuer on loopback, at which subject always sits at the browser. */
export async function provide(subject) {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const visits = new Map()
  const server = http.createServer((request, response) => {
    const at = new URL(request.url, issuer)
    const answer = (value, status = 200) => response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value))
    switch (at.pathname) {
      case '/.well-known/openid-configuration':
        return answer({ issuer, jwks_uri: issuer + '/keys', authorization_endpoint: issuer + '/authorize', token_endpoint: issuer + '/token' })
      case '/keys':
        return answer({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: '1', use: 'sig', alg: 'ES256' }] })
      case '/authorize': {
        const code = randomUUID()
        visits.set(code, at.searchParams)
        const back = new URL(at.searchParams.get('redirect_uri'))
        back.search = new URLSearchParams({ code, state: at.searchParams.get('state'), iss: issuer })
        return response.writeHead(302, { Location: back.href }).end()
      }
      case '/token': {
        let body = ''
        return request.on('data', (text) => (body += text)).on('end', () => {
          const form = new URLSearchParams(body)
          const visit = visits.get(form.get('code'))
          visits.delete(form.get('code'))
          const challenge = createHash('sha256').update(form.get('code_verifier') ?? '').digest('base64url')
          if (visit?.get('code_challenge') !== challenge) return answer({ error: 'invalid_grant' }, 400)
          answer({ id_token: token(visit), token_type: 'Bearer' })
        })
      }
    }
    response.writeHead(404).end()
  })
  const token = (visit) => {
    const now = Math.floor(Date.now() / 1000)
    const claims = { iss: issuer, sub: subject, aud: visit.get('client_id'), nonce: visit.get('nonce'), iat: now, exp: now + 600 }
    const text = base64({ alg: 'ES256', kid: '1', typ: 'JWT' }) + '.' + base64(claims)
    return text + '.' + sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')
  }
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const issuer = 'http://127.0.0.1:' + server.address().port
  allow(issuer)
  atEnd(() => (server.closeAllConnections(), server.close()))
  return issuer
}
