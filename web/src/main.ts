import { mount } from 'svelte'
import App from './App.svelte'
import './app.css'
import { clock } from './lib/clock.svelte'
import { commands } from './lib/commands.svelte'
import { shared } from './lib/console.svelte'
import { router } from './lib/router.svelte'
import { session } from './lib/session.svelte'
import { settings } from './lib/settings.svelte'

settings.start()
router.start()
clock.start()
commands.start()
shared.start()
mount(App, { target: document.getElementById('app')! })
void session.load()
