import Type, { type Static, type TObject, type TSchema } from 'typebox'
import type { Backend, Host, Kind } from './kind.ts'

const NO_PARAMS = Type.Object({}, { additionalProperties: false })
type NoParams = typeof NO_PARAMS

/** The result of a kind's `open`; with nothing to close, it needs no `[Symbol.asyncDispose]`. */
export type Opened<P = unknown> = MayDispose<Backend<P>>
type MayDispose<B> = B extends AsyncDisposable
  ? Omit<B, typeof Symbol.asyncDispose> & Partial<AsyncDisposable>
  : never

/** A `Kind` as it is written: fields that most kinds leave at their default are optional. */
export interface KindParts<C extends TObject, P extends TSchema, V>
  extends Omit<Kind<C, P>, 'params' | 'limits' | 'upstream' | 'open'> {
  readonly params?: P
  readonly limits?: Kind['limits']
  /** Default: true. */
  readonly upstream?: boolean
  /** Checks that no schema expresses, before `complete` and before `open`. Throws `BackendError` (`misconfigured`). */
  validate?(config: Static<C>): V
  /** `valid`: what `validate` returned. */
  open(config: Static<C>, host: Host, valid: V): Promise<Opened<Static<P>>>
}

/** Checks the types of a kind, and fills in what was left out. */
export function defineKind<C extends TObject, P extends TSchema = NoParams, V = void>(
  parts: KindParts<C, P, V>,
): Kind<C, P> {
  const { validate, complete, open, ...rest } = parts
  const valid = (config: Static<C>) => validate?.(config) as V
  const completed = async (config: Static<C>) => {
    valid(config)
    return complete === undefined ? config : complete(config)
  }
  return {
    upstream: true,
    limits: {},
    params: NO_PARAMS as TSchema as P,
    ...rest,
    ...(validate === undefined && complete === undefined ? {} : { complete: completed }),
    async open(config, host) {
      const opened = await open(config, host, valid(config))
      return Object.assign(opened, {
        [Symbol.asyncDispose]: opened[Symbol.asyncDispose] ?? (async () => undefined),
      }) as Backend<Static<P>>
    },
  }
}
