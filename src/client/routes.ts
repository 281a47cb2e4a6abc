import type { Static, TNull, TSchema } from 'typebox'
import type { ROUTES } from '../api/routes.ts'
import type { Authorizer } from './authorize.ts'
import { type Call, pathPart } from './send.ts'
import type { Sent } from './wire.ts'

type Table = typeof ROUTES
export type Route = keyof Table

type Held<Schema> = Schema extends TNull ? undefined : Schema extends TSchema ? Static<Schema> : never
type Replies<R extends Route> = Table[R]['replies']
/** What a good reply of the route holds; undefined where it has no body. */
export type Answer<R extends Route> = { [S in keyof Replies<R>]: Held<Replies<R>[S]> }[keyof Replies<R>]

type Body<R extends Route> =
  Table[R] extends Readonly<Record<'body', infer Schema extends TSchema>>
    ? { readonly body: Sent<Static<Schema>> }
    : { readonly body?: never }
/** `id`: the one part of the path that varies, whatever the table calls it. */
type Input<R extends Route> = Pick<Call, 'query' | 'headers' | 'retry' | 'signal'> &
  (R extends `${string}/:${string}` ? { readonly id: string } : { readonly id?: never }) &
  Body<R>

/** Calls one route, typed by its row. */
export type Request = <R extends Route>(route: R, input: Input<R>) => Promise<Answer<R>>

export function requestThrough({ call }: Pick<Authorizer, 'call'>): Request {
  return async <R extends Route>(route: R, { id, ...input }: Input<R>) => {
    const [method, path = ''] = route.split(' ')
    const filled = id === undefined ? path : path.replace(/:\w+/, () => pathPart(id))
    return (await call<Answer<R>>({ method: method as Call['method'], path: filled, ...input })).body
  }
}
