import { type KindVariables, variablesWithin } from '../project-file/kind-variables.ts'
import type { Delivery } from './deliver.ts'

/** A credential and, where nothing says how to deliver it, the variables of its kind. */
export interface Obtained extends Delivery {
  readonly kind: KindVariables | undefined
}

/**
 * Adds the variables of its kind to each credential that nothing maps. What is mapped by name wins, and of two credentials that
 * would set the same variable neither gets its kind's.
 */
export function withKindVariables(all: readonly Obtained[], note: (text: string) => void): Delivery[] {
  const mapped = new Set(all.flatMap(({ requested }) => namesOf(requested)))
  const wanted = all.map(({ requested, issuance, kind }) => {
    if (kind === undefined) return undefined
    for (const name of kind.unknown.filter((one) => !mapped.has(one)))
      note(unknownVariable(requested.request.backend, name))
    return without(variablesWithin(kind, issuance.credential), mapped)
  })
  const names = wanted.flatMap((one) => (one === undefined ? [] : namesOf(one)))
  const twice = new Set(names.filter((name, index) => names.indexOf(name) !== index))
  return all.map(({ kind: _, ...delivery }, index) => {
    const own = wanted[index]
    if (own === undefined) return delivery
    const clash = namesOf(own).find((name) => twice.has(name))
    if (clash === undefined) return extended(delivery, own)
    const { name } = delivery.requested
    note(
      `mayfly: ${clash} could be set for ${name} and for another credential, so the variables of its kind are not set.`,
    )
    return delivery
  })
}

/** A kind that wants files gets no copies of the secret in variables, which would keep it from being renewed. */
function extended(delivery: Delivery, { env, files }: KindVariables): Delivery {
  const { requested } = delivery
  const isSpread = requested.isSpread && files.length === 0
  return {
    ...delivery,
    requested: {
      ...requested,
      isSpread,
      env: [...requested.env, ...env],
      files: [...requested.files, ...files],
    },
  }
}

const namesOf = ({ env, files }: Pick<KindVariables, 'env' | 'files'>) =>
  [...env, ...files].map(({ variable }) => variable)

function without({ env, files, unknown }: KindVariables, taken: ReadonlySet<string>): KindVariables {
  const isFree = ({ variable }: { readonly variable: string }) => !taken.has(variable)
  return { env: env.filter(isFree), files: files.filter(isFree), unknown }
}

/** The name is the server's: shown, never used. */
function unknownVariable(backend: string, name: string): string {
  const shown = JSON.stringify(name.slice(0, 60))
  return `mayfly: ${backend} names the variable ${shown}, which mayfly sets only with --env or --file.`
}
