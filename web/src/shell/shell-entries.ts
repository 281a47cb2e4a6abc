import { useLocation } from 'wouter'
import { useMe } from '../api/me.ts'
import { paths } from '../paths.ts'
import { prefer } from '../ui/density.ts'
import { type Entry, useEntries } from './entries.ts'
import { logOut } from './log-out.ts'
import { ACCOUNT, ROOMS } from './rooms.ts'

/** What the palette offers everywhere. */
export function useShellEntries({ help }: { readonly help: () => void }): void {
  const [, go] = useLocation()
  const me = useMe()
  const rooms = [...ROOMS, ACCOUNT].map(
    ({ name, path, letter, operation }): Entry => ({
      name,
      hotkey: `G ${letter}`,
      group: 'Go to',
      run: () => go(path),
      refused: me?.operations.includes(operation) === false ? 'Your scopes do not include this.' : undefined,
    }),
  )
  const view = (name: string, run: () => void, words = ''): Entry => ({ name, words, group: 'View', run })
  useEntries([
    ...rooms,
    { name: 'Create an agent', group: 'Go to', run: () => go(paths.newAgent()) },
    {
      name: 'Log in a command',
      words: 'device code allow terminal',
      group: 'Go to',
      run: () => go(paths.allow()),
    },
    { name: 'Add a backend', group: 'Go to', run: () => go(paths.newBackend()) },
    view('Keys of the keyboard', help, 'help shortcuts ?'),
    view('Light', () => prefer('theme', 'light'), 'theme colour'),
    view('Dark', () => prefer('theme', 'dark'), 'theme colour night'),
    view('Light or dark as the system', () => prefer('theme', ''), 'theme'),
    view('Dense lists', () => prefer('density', 'dense'), 'rows compact'),
    view('Roomy lists', () => prefer('density', ''), 'rows comfortable'),
    view('Log out', () => void logOut(), 'end session'),
  ])
}
