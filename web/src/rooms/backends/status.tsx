import type { Backend } from '../../../../src/client/wire.ts'
import { useNow } from '../../ui/clock.ts'
import { Status } from '../../ui/status.tsx'
import { statesOf } from './state.ts'

/** What is worst about it; how many things more. */
export function BackendStatus({ row }: { readonly row: Backend }) {
  const [first, ...rest] = statesOf(row, useNow(30_000))
  return (
    <Status look={first.look}>{rest.length === 0 ? first.words : `${first.words} +${rest.length}`}</Status>
  )
}

/** All of it. */
export function BackendStates({ row }: { readonly row: Backend }) {
  return (
    <span className="flex flex-wrap gap-x-4">
      {statesOf(row, useNow(30_000)).map(({ look, words }) => (
        <Status key={words} look={look}>
          {words}
        </Status>
      ))}
    </span>
  )
}
