import { Command } from 'cmdk'
import { Dialog } from 'radix-ui'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { useMe } from '../api/me.ts'
import { useList } from '../api/queries.ts'
import { paths } from '../paths.ts'
import { Key } from '../ui/button.tsx'
import { visible } from '../ui/hostile.ts'
import { useKeys } from '../ui/keys.ts'
import { type Entry, useAllEntries } from './entries.ts'

const GROUPS = ['Here', 'Find', 'Go to', 'View'] as const

/** One box to go somewhere, to find something and to act on what is open. The page stays visible behind it. */
export function Palette({ onClose }: { readonly onClose: () => void }) {
  const [text, setText] = useState('')
  useKeys({ 'Ctrl K': onClose }, { isModal: true })
  const entries = [...useAllEntries(), ...useFound(text)]
  return (
    <Dialog.Root open onOpenChange={(isOpen) => isOpen || onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-scrim" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fixed top-[12vh] left-1/2 z-50 w-[min(600px,calc(100vw-24px))] -translate-x-1/2 overflow-hidden rounded-md border border-line bg-surface shadow-float"
        >
          <Dialog.Title className="sr-only">Search or act</Dialog.Title>
          <Command label="Search or act" loop>
            <Command.Input
              value={text}
              onValueChange={setText}
              placeholder="Go, search or act…"
              className="h-12 w-full border-b border-line bg-transparent px-4 text-base outline-none"
            />
            <Command.List className="max-h-[56vh] overflow-y-auto p-1.5">
              <Command.Empty className="px-3 py-6 text-center text-muted">
                Nothing has this name.
              </Command.Empty>
              {GROUPS.map((group) => (
                <Group key={group} name={group} entries={entries} onClose={onClose} />
              ))}
            </Command.List>
          </Command>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

function Group(props: {
  readonly name: string
  readonly entries: readonly Entry[]
  readonly onClose: () => void
}) {
  const own = props.entries.filter(({ group }) => group === props.name)
  if (own.length === 0) return null
  return (
    <Command.Group
      heading={props.name}
      className="[&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:pt-2 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-xs [&_[cmdk-group-heading]]:text-muted"
    >
      {own.map(({ name, words, hotkey, run, refused }) => (
        <Command.Item
          key={name}
          value={`${name} ${words ?? ''}`}
          disabled={refused !== undefined}
          onSelect={() => {
            props.onClose()
            run()
          }}
          className="flex cursor-pointer items-center justify-between gap-4 rounded-sm px-2.5 py-1.5 data-[disabled=true]:cursor-not-allowed data-[disabled=true]:text-muted data-[selected=true]:bg-accent-soft"
        >
          <span className="truncate">{visible(name)}</span>
          {refused === undefined ? (
            <span className="flex gap-1 max-md:hidden">
              {hotkey?.split(' ').map((one) => (
                <Key key={one} name={one} />
              ))}
            </span>
          ) : (
            <span className="text-xs">{refused}</span>
          )}
        </Command.Item>
      ))}
    </Command.Group>
  )
}

/** Agents, backends and ids by name. */
function useFound(text: string): readonly Entry[] {
  const [, go] = useLocation()
  const me = useMe()
  const may = (operation: string) => me?.operations.includes(operation) === true
  const agents = useList('GET /v1/admin/agents', { limit: 1_000 }, { enabled: may('listAgents') }).data ?? []
  const backends =
    useList('GET /v1/admin/backends', { limit: 1_000 }, { enabled: may('listBackends') }).data ?? []
  const find = (name: string, words: string, path: string): Entry => ({
    name,
    words,
    group: 'Find',
    run: () => go(path),
  })
  const id = text.trim()
  if (/^cred_[0-9a-z]{26}$/.test(id)) return [find(id, 'credential', paths.credential(id))]
  if (/^run_[0-9a-z]{26}$/.test(id)) return [find(id, 'run', paths.run(id))]
  if (/^enr_[0-9a-z]{26}$/.test(id)) return [find(id, 'request', paths.request(id))]
  if (text.length < 2) return []
  const isFound = ({ name }: { readonly name: string }) => name.toLowerCase().includes(id.toLowerCase())
  return [
    ...agents.filter(isFound).map(({ name }) => find(`Agent ${name}`, name, paths.agent(name))),
    ...backends.filter(isFound).map(({ name }) => find(`Backend ${name}`, name, paths.backend(name))),
  ].slice(0, 40)
}
