import { BackendError, misconfigured } from '../../domain/backend-error.ts'
import type { Handle } from '../kind.ts'
import type { Send } from './calls.ts'
import type { Recipe } from './schema.ts'
import { takeOne } from './send.ts'
import type { Vars } from './template.ts'

/** The identity behind the login, if the token alone selects whose accounts are listed and ended. */
export interface Identity {
  /** The part of it that the handle of a credential keeps. */
  forHandle(signal: AbortSignal): Promise<{ readonly identity?: string }>
  /** Throws `misconfigured` where another identity made the credential: it would count as gone, and live on. */
  requireSame(handle: Handle, signal: AbortSignal): Promise<void>
  /** For `check`. */
  warnings(signal: AbortSignal): Promise<readonly string[]>
}

/** Asks once for each configuration, because a backend is opened again with another one. */
export function createIdentity(
  recipe: Recipe,
  { at, ...request }: NonNullable<Recipe['identity']>,
  settings: Vars,
  send: Send,
): Identity {
  let known: { readonly identity?: string } | undefined
  async function ask(signal: AbortSignal): Promise<{ readonly identity?: string }> {
    try {
      const reply = await send(request, { vars: settings, signal })
      return { identity: String(takeOne(recipe, at, reply.json(), settings)) }
    } catch (error) {
      // A login that may not ask can still be a good one.
      if (error instanceof BackendError && error.fault === 'denied') return {}
      throw error
    }
  }
  async function own(signal: AbortSignal): Promise<{ readonly identity?: string }> {
    known ??= await ask(signal)
    return known
  }
  return {
    forHandle: own,
    async requireSame({ identity }, signal) {
      if (identity === undefined || (await own(signal)).identity === identity) return
      throw misconfigured(
        `${recipe.title}: another account than that of Mayfly's login made this credential; give Mayfly a login of that account.`,
      )
    },
    async warnings(signal) {
      if ((await own(signal)).identity !== undefined) return []
      return [
        "Mayfly's login may not ask whose it is. Do not replace it by one of another account while credentials live: they would not be found.",
      ]
    },
  }
}
