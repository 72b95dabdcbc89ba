// Pages by real paths; what a view shows is in the query, so that every view has a link.

class Router {
  path = $state(location.pathname)
  query = $state.raw(new URLSearchParams(location.search))

  get namespace(): string {
    return this.query.get('ns') || 'default'
  }

  start(): void {
    addEventListener('popstate', () => this.read())
    document.addEventListener('click', event => this.click(event))
  }

  /** href returns the link to a page in this namespace. */
  href(path: string, query: Record<string, string | undefined> = {}): string {
    const search = new URLSearchParams()
    if (this.namespace !== 'default' && !('ns' in query)) search.set('ns', this.namespace)
    for (const [name, value] of Object.entries(query)) if (value) search.set(name, value)
    return join(path, search)
  }

  go(href: string): void {
    if (href === location.pathname + location.search) return
    history.pushState(null, '', href)
    this.read()
    scrollTo(0, 0)
  }

  /** set changes some of the query and keeps the rest; an empty value takes the name away. */
  set(change: Record<string, string | undefined>, push = false): void {
    const query = new URLSearchParams(this.query)
    for (const [name, value] of Object.entries(change)) {
      if (value) query.set(name, value)
      else query.delete(name)
    }
    const href = join(this.path, query)
    if (href === location.pathname + location.search) return
    if (push) history.pushState(null, '', href)
    else history.replaceState(null, '', href)
    this.read()
  }

  private read(): void {
    this.path = location.pathname
    this.query = new URLSearchParams(location.search)
  }

  private click(event: MouseEvent): void {
    const link = (event.target as Element).closest?.('a')
    const href = link?.getAttribute('href')
    if (!link || !href?.startsWith('/') || link.target || link.hasAttribute('download') || event.button !== 0) return
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
    if (/^\/(v1|console|metrics|readyz)(\/|$|\?)/.test(href)) return
    event.preventDefault()
    this.go(href)
  }
}

// Slashes and colons are left readable: they mean nothing else in a query.
function join(path: string, query: URLSearchParams): string {
  const text = query.toString().replaceAll('%2F', '/').replaceAll('%3A', ':').replaceAll('%40', '@')
  return text ? `${path}?${text}` : path
}

export const router = new Router()
