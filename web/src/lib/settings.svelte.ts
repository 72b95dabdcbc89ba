// What this browser remembers: the theme, a name and the namespaces that were visited.

export type Theme = 'system' | 'dark' | 'light'

const themes: Theme[] = ['system', 'dark', 'light']

function recall(name: string): string | null {
  try {
    return localStorage.getItem('leasehold.' + name)
  } catch {
    return null // storage may be off
  }
}

function remember(name: string, value: string): void {
  try {
    localStorage.setItem('leasehold.' + name, value)
  } catch {
    // then it is for this visit alone
  }
}

class Settings {
  theme = $state<Theme>(themes.find(t => t === recall('theme')) ?? 'system')
  /** who breaks and asks, where nobody signs in. */
  name = $state(recall('name') ?? '')
  namespaces = $state.raw<string[]>(readNames(recall('namespaces')))

  start(): void {
    // Without the attribute the style sheet follows the system.
    const show = () => {
      if (this.theme === 'system') delete document.documentElement.dataset.theme
      else document.documentElement.dataset.theme = this.theme
    }
    $effect.root(() => {
      $effect(show)
    })
  }

  setTheme(theme: Theme): void {
    this.theme = theme
    remember('theme', theme)
  }

  /** nextTheme goes round: as the system, dark, light. */
  nextTheme(): void {
    this.setTheme(themes[(themes.indexOf(this.theme) + 1) % themes.length]!)
  }

  setName(name: string): void {
    this.name = name.trim()
    remember('name', this.name)
  }

  visited(namespace: string): void {
    if (this.namespaces[0] === namespace) return
    this.namespaces = [namespace, ...this.namespaces.filter(n => n !== namespace)].slice(0, 20)
    remember('namespaces', JSON.stringify(this.namespaces))
  }
}

function readNames(text: string | null): string[] {
  try {
    const names: unknown = JSON.parse(text ?? '[]')
    return Array.isArray(names) ? names.filter(n => typeof n === 'string') : []
  } catch {
    return []
  }
}

export const settings = new Settings()
