// What can be done from the keyboard and the palette: one list for both, and for the help.
import { untrack } from 'svelte'

export interface Command {
  name: string
  /** a key, or two after each other as in "g l" */
  key?: string
  /** those of the resource that is open come up with "." */
  about?: 'resource'
  run: () => void
}

const pairTime = 1_200

class Commands {
  list = $state.raw<Command[]>([])
  private first = ''
  private firstAt = 0

  /** use adds commands until the function that it returns is called. */
  use(commands: Command[]): () => void {
    const change = (next: (list: Command[]) => Command[]) => (this.list = next(untrack(() => this.list)))
    change(list => [...list, ...commands])
    return () => void change(list => list.filter(c => !commands.includes(c)))
  }

  start(): void {
    document.addEventListener('keydown', event => this.press(event))
  }

  private press(event: KeyboardEvent): void {
    if (event.isComposing || document.querySelector('dialog[open]')) return
    const key = keyOf(event)
    if (!key || (isTyping(event.target) && key !== 'Escape' && key !== 'Ctrl-K')) return
    const pair = event.timeStamp - this.firstAt < pairTime ? `${this.first} ${key}` : ''
    this.first = ''
    const command = this.find(pair) ?? this.find(key)
    if (command) {
      event.preventDefault()
      command.run()
    } else if (this.list.some(c => c.key?.startsWith(key + ' '))) {
      this.first = key
      this.firstAt = event.timeStamp
    }
  }

  // The newest comes first: what a page adds goes before what is always there.
  private find(key: string): Command | undefined {
    return key ? this.list.findLast(c => c.key === key) : undefined
  }
}

/** keyOf names a key as the list does; empty if it is for the browser. */
export function keyOf(event: Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey'>): string {
  if (event.ctrlKey || event.metaKey) return event.key.toLowerCase() === 'k' && !event.altKey ? 'Ctrl-K' : ''
  return event.altKey ? '' : event.key
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest('input, textarea, select, [contenteditable]') !== null
}

export const commands = new Commands()
