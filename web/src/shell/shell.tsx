import { lazy, Suspense, useState } from 'react'
import { Link, Route, Switch, useLocation } from 'wouter'
import { useMe } from '../api/me.ts'
import { useRead } from '../api/queries.ts'
import { useLiveState } from '../live/live.ts'
import { useRefresh } from '../live/refresh.ts'
import { paths } from '../paths.ts'
import { Button } from '../ui/button.tsx'
import { useKeys } from '../ui/keys.ts'
import { Empty, ErrorNote, Skeleton } from '../ui/notes.tsx'
import { whoOf } from '../ui/person.tsx'
import { Status } from '../ui/status.tsx'
import { Wordmark } from '../ui/wordmark.tsx'
import { Boundary } from './boundary.tsx'
import { useLater } from './later.ts'
import { ACCOUNT, ROOMS, type Room, roomOf } from './rooms.ts'
import { useShellEntries } from './shell-entries.ts'

const Palette = lazy(async () => ({ default: (await import('./palette.tsx')).Palette }))
const Help = lazy(async () => ({ default: (await import('./help.tsx')).Help }))

/** The frame around every room: where one can go, who one is, and whether the page is live. */
export function Shell() {
  const [location, go] = useLocation()
  const [open, setOpen] = useState<'palette' | 'help'>()
  const [isMenuOpen, setMenuOpen] = useState(false)
  useRefresh()
  useShellEntries({ help: () => setOpen('help') })
  useKeys({
    'Ctrl K': () => setOpen('palette'),
    '?': () => setOpen('help'),
    '/': () => document.querySelector<HTMLElement>('[data-filter]')?.focus(),
    ...Object.fromEntries([...ROOMS, ACCOUNT].map(({ letter, path }) => [`G ${letter}`, () => go(path)])),
  })
  const room = roomOf(location)
  return (
    <div className="grid h-full grid-rows-[auto_minmax(0,1fr)] md:grid-cols-[208px_minmax(0,1fr)] md:grid-rows-1">
      <a
        href="#room"
        className="sr-only focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-50 focus:bg-surface focus:p-2"
      >
        Skip to the page
      </a>
      <TopBar title={room?.name ?? 'Mayfly'} isOpen={isMenuOpen} onToggle={() => setMenuOpen(!isMenuOpen)} />
      <Navigation
        room={room}
        isOpen={isMenuOpen}
        onGo={() => setMenuOpen(false)}
        onPalette={() => setOpen('palette')}
      />
      <main id="room" className="min-h-0 min-w-0">
        <Rooms />
      </main>
      <Suspense>
        {open === 'palette' && <Palette onClose={() => setOpen(undefined)} />}
        {open === 'help' && <Help onClose={() => setOpen(undefined)} />}
      </Suspense>
    </div>
  )
}

function Rooms() {
  const [location] = useLocation()
  return (
    <Boundary path={location.split('?')[0] ?? ''}>
      <Switch>
        {[ACCOUNT, ...ROOMS.slice(1)].map((room) => (
          <Route key={room.path} path={`${room.path}/:id?`}>
            <Entered room={room} />
          </Route>
        ))}
        <Route path={paths.overview()}>
          <Entered room={ROOMS[0] as Room} />
        </Route>
        <Route>
          <Empty title="There is nothing at this address">
            <Link className="text-accent underline" href={paths.overview()}>
              Go to the overview
            </Link>
          </Empty>
        </Route>
      </Switch>
    </Boundary>
  )
}

/** The room, or why this person does not see it. */
function Entered({ room }: { readonly room: Room }) {
  const me = useRead('GET /v1/admin/me')
  const View = useLater(room.code)
  if (me.error !== null && me.data === undefined)
    return (
      <div className="p-4">
        <ErrorNote error={me.error} retry={() => void me.refetch()} />
      </div>
    )
  if (me.data === undefined) return null
  if (!me.data.operations.includes(room.operation))
    return (
      <Empty title={`${room.name}: not with your scopes`}>
        You hold {me.data.scopes.join(', ') || 'no admin scopes'}. Ask an operator who may change yours.
      </Empty>
    )
  if (View === undefined)
    return (
      <div className="p-4">
        <Skeleton lines={8} />
      </div>
    )
  return <View />
}

function TopBar(props: { readonly title: string; readonly isOpen: boolean; readonly onToggle: () => void }) {
  return (
    <header className="flex items-center justify-between border-b border-line bg-surface px-4 py-2 md:hidden">
      <Link href={paths.overview()} aria-label="Mayfly: overview">
        <Wordmark isSmall />
      </Link>
      <Button aria-expanded={props.isOpen} aria-controls="navigation" onClick={props.onToggle}>
        {props.isOpen ? 'Close' : 'Menu'}
      </Button>
    </header>
  )
}

interface NavigationProps {
  readonly room: Room | undefined
  readonly isOpen: boolean
  readonly onGo: () => void
  readonly onPalette: () => void
}

function Navigation({ room, isOpen, onGo, onPalette }: NavigationProps) {
  const me = useMe()
  const who = me === undefined ? undefined : whoOf(me)
  const waiting = useRead(
    'GET /v1/admin/pending',
    { query: { limit: 100 } },
    {
      enabled: me?.operations.includes('listPending') === true,
    },
  ).data?.length
  const item = (one: Room) => (
    <li key={one.path}>
      <Link
        href={one.path}
        onClick={onGo}
        aria-current={one === room ? 'page' : undefined}
        className="flex items-center justify-between rounded-sm px-2 py-1 text-ink hover:bg-sunken max-md:py-2 aria-[current]:bg-accent-soft aria-[current]:font-semibold"
      >
        {one.name}
        {one.path === paths.inbox() && waiting !== undefined && waiting > 0 && (
          <span className="rounded-full bg-wait-soft px-1.5 text-xs font-semibold text-wait">
            {waiting === 100 ? '100+' : waiting}
            <span className="sr-only"> waiting</span>
          </span>
        )}
      </Link>
    </li>
  )
  return (
    <nav
      id="navigation"
      aria-label="Rooms"
      className={`flex min-h-0 flex-col gap-4 overflow-y-auto border-line bg-surface p-3 max-md:absolute max-md:inset-x-0 max-md:top-[49px] max-md:bottom-0 max-md:z-30 md:border-r ${isOpen ? '' : 'max-md:hidden'}`}
    >
      <Link href={paths.overview()} className="px-2 pt-1 max-md:hidden" aria-label="Mayfly: overview">
        <Wordmark isSmall />
      </Link>
      <Button look="plain" className="justify-between text-muted" hotkey="Ctrl K" onClick={onPalette}>
        Search or act
      </Button>
      <ul className="grid gap-0.5">{ROOMS.filter(({ group }) => group === 'daily').map(item)}</ul>
      <div className="px-2 text-xs text-muted">Setup</div>
      <ul className="-mt-3 grid gap-0.5">{ROOMS.filter(({ group }) => group === 'setup').map(item)}</ul>
      <div className="mt-auto grid gap-2 border-t border-line px-2 pt-3">
        <Live />
        <Link href={paths.account()} onClick={onGo} className="truncate hover:underline" title={who}>
          {me?.name ?? '…'}
          <span className="block truncate text-xs text-muted">{who}</span>
        </Link>
      </div>
    </nav>
  )
}

const STATES = {
  live: ['ok', 'Live'],
  connecting: ['wait', 'Reconnecting…'],
  refused: ['off', 'Not live: needs admin:audit:read'],
  off: ['off', 'Not live'],
} as const
function Live() {
  const [look, word] = STATES[useLiveState()]
  return (
    <span role="status" className="truncate text-xs">
      <Status look={look}>{word}</Status>
    </span>
  )
}
