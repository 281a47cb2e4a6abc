import type { Surroundings } from '../frame/surroundings.ts'
import { type KindVariables, NONE, variablesWithin } from '../project-file/kind-variables.ts'
import { chooseVariables } from '../project-file/server-variables.ts'
import { type Delivery, variablesFor } from './deliver.ts'

/** A credential and, where nothing says how to deliver it, the variables of its kind. */
export interface Obtained extends Delivery {
  readonly kind: KindVariables | undefined
}

/**
 * Adds to each credential that nothing maps the variables of its fields and of its kind that may be set beside `env`. What is
 * mapped by name wins, and of two credentials that would set the same variable neither gets its kind's.
 */
export function withKindVariables(
  all: readonly Obtained[],
  env: Surroundings['env'],
  note: (text: string) => void,
): Delivery[] {
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
    const { requested } = delivery
    if (!requested.isSpread) return delivery
    const own = wanted[index] ?? NONE
    const clash = namesOf(own).find((name) => twice.has(name))
    if (clash !== undefined)
      note(
        `mayfly: ${clash} could be set for ${requested.name} and for another credential, so the variables of its kind are not set.`,
      )
    const elsewhere = new Set(
      all.flatMap((other) => (other.requested === requested ? [] : namesOf(other.requested))),
    )
    return chosen(delivery, clash === undefined ? own : NONE, { ...env, ...marked(elsewhere) }, note)
  })
}

/** A kind that wants files gets no copies of the secret in variables, which would keep it from being renewed. */
function chosen(
  delivery: Delivery,
  kind: KindVariables,
  env: Surroundings['env'],
  note: (text: string) => void,
): Delivery {
  const { requested, issuance } = delivery
  const isSpread = kind.files.length === 0
  const { notes, ...variables } = chooseVariables({
    name: requested.name,
    credential: issuance.credential,
    prefix: isSpread ? requested.name : undefined,
    kind,
    mapped: {
      ...variablesFor(requested, issuance.credential),
      ...marked(requested.files.map(({ variable }) => variable)),
    },
    env,
  })
  for (const text of notes) note(text)
  return {
    ...delivery,
    spread: variables.spread,
    requested: {
      ...requested,
      isSpread,
      env: [...requested.env, ...variables.kind.env],
      files: [...requested.files, ...variables.kind.files],
    },
  }
}

/** Variables whose values do not matter. */
const marked = (names: Iterable<string>) => Object.fromEntries([...names].map((name) => [name, 'set']))

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
