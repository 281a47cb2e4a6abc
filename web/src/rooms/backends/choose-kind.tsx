import { type FormEvent, useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { Kind } from '../../../../src/client/wire.ts'
import { paths } from '../../paths.ts'
import { Input } from '../../ui/fields.tsx'
import { visible } from '../../ui/hostile.ts'
import { endOf } from '../kinds/use-kinds.ts'
import { findKinds } from './find-kinds.ts'

/** All kinds, found by name, by title or by what they give. Enter takes the first one. */
export function ChooseKind({ kinds }: { readonly kinds: readonly Kind[] }) {
  const [text, setText] = useState('')
  const [, go] = useLocation()
  const found = findKinds(kinds, text)
  const take = (event: FormEvent) => {
    event.preventDefault()
    const [first] = found
    if (first !== undefined) go(paths.newBackend(first.type))
  }
  return (
    <>
      <form onSubmit={take} role="search">
        <Input
          type="search"
          aria-label="Find a kind"
          placeholder="postgres, cloud, git…"
          value={text}
          autoFocus
          onChange={({ target }) => setText(target.value)}
        />
      </form>
      <p role="status" className="text-xs text-muted">
        {found.length} of {kinds.length} kinds
      </p>
      <ul className="grid gap-px">
        {found.map(({ type, title, revocation }) => (
          <li key={type}>
            <Link
              href={paths.newBackend(type)}
              className="flex items-baseline justify-between gap-4 rounded-sm px-2 py-1.5 hover:bg-sunken"
            >
              <span className="min-w-0">
                <span className="font-medium">{visible(title)}</span>{' '}
                <code className="text-xs text-muted">{type}</code>
              </span>
              <span className="text-xs whitespace-nowrap text-muted">{endOf(revocation)}</span>
            </Link>
          </li>
        ))}
      </ul>
      {found.length === 0 && (
        <p className="text-muted">
          No kind has this name. A plugin adds one: <code>mayfly plugin add</code> on the machine of the
          server.
        </p>
      )}
    </>
  )
}
