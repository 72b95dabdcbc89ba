// Who looks, and what the server lets them do.
import { api, onUnauthenticated, problemOf } from './api'
import { router } from './router.svelte'
import type { CanI } from './types'

class Session {
  /** access is on: people sign in, and may do what rules allow. */
  access = $state(false)
  principal = $state('')
  groups = $state.raw<string[]>([])
  /** when the session ends, as the API writes it. */
  until = $state('')
  issuers = $state.raw<{ name: string }[]>([])
  loaded = $state(false)
  /** the server wants to know who asks. */
  needed = $state(false)
  private answers = new Map<string, Promise<CanI>>()

  async load(): Promise<void> {
    onUnauthenticated(() => this.lost())
    try {
      const s = await api.session()
      this.take(s.access, s.principal, s.groups, s.until)
      this.issuers = s.issuers ?? []
    } catch (e) {
      if (problemOf(e).status !== 401) await this.loadWhoami()
    }
    this.loaded = true
    if (this.access && !this.principal) this.lost()
  }

  // A server without the console's own routes, as in development, still says who asks.
  private async loadWhoami(): Promise<void> {
    const who = await api.whoami().catch(() => undefined)
    if (who) this.take(who.enabled, who.principal, who.groups, who.expires)
  }

  private take(access: boolean, principal = '', groups: string[] = [], until = ''): void {
    this.access = access
    this.principal = principal
    this.groups = groups
    this.until = until
    this.needed = false
    this.answers.clear()
  }

  private lost(): void {
    this.access = true
    this.needed = true
    this.principal = ''
    if (router.path === '/signin') return
    router.go('/signin?to=' + encodeURIComponent(location.pathname + location.search))
  }

  async signIn(token: string): Promise<void> {
    await api.signIn(token)
    await this.load()
  }

  /** visit leaves for an issuer, which sends the browser back when it knows who sits there. */
  async visit(issuer: string, to: string): Promise<void> {
    location.assign((await api.visitIssuer(issuer, to)).location)
  }

  async signOut(): Promise<void> {
    await api.signOut().catch(() => undefined)
    this.lost()
  }

  /** can asks whether a verb is allowed, once for each resource, or for each lease on it. */
  can(namespace: string, verb: string, path?: string, id?: string): Promise<CanI> {
    const key = JSON.stringify([namespace, verb, path, id])
    let answer = this.answers.get(key)
    if (!answer) {
      answer = api.canI(namespace, verb, path, id)
      answer.catch(() => this.answers.delete(key))
      this.answers.set(key, answer)
      // What was allowed changes rarely; the server decides in any case.
      setTimeout(() => this.answers.delete(key), 60_000)
    }
    return answer
  }
}

export const session = new Session()
