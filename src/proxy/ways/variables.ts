import type { HttpUse } from '../../domain/use.ts'
import type { Site } from '../types.ts'
import { gitVariables } from './git.ts'
import { type Program, programsOf } from './programs.ts'
import { registryVariables } from './registries.ts'

type Env = Readonly<Record<string, string | undefined>>

export interface SiteVariables {
  readonly env: Readonly<Record<string, string>>
  /** Files that a variable must name. `name` is safe as a file name. */
  readonly files: readonly { readonly variable: string; readonly name: string; readonly text: string }[]
  /** What the user should know, for standard error. */
  readonly notes: readonly string[]
}

/** kubectl sends a token only over TLS ("client-go: transport"). */
const NEEDS_TLS: ReadonlySet<string> = new Set(['kubernetes'])

/** Whether clients send the secret of this use only over TLS, so that its site must be https. */
export function needsTls(type: string, _use: HttpUse): boolean {
  return NEEDS_TLS.has(type)
}

/**
 * The variables that lead programs to the sites. `env`: all that the child will have otherwise, its placeholders included: an
 * address is left out where its program would send a secret there that is none of ours.
 */
export function siteVariables(sites: readonly Site[], env: Env): SiteVariables {
  const chosen: Record<string, string> = {}
  const notes: string[] = []
  const taken = new Map<string, string>()
  for (const site of sites) {
    chosen[nameOf(site)] = site.url
    for (const program of programsOf(site)) {
      const foreign = foreignSecret(program, site, env)
      const wanted = program.variables(rootOf(site, program))
      const [first = ''] = Object.keys(wanted)
      if (foreign !== undefined)
        notes.push(`mayfly: ${site.held.name}: ${first} is not set, because ${foreign}.`)
      else if (taken.has(first))
        notes.push(`mayfly: ${site.held.name}: ${first} is already set for ${taken.get(first)}.`)
      else {
        taken.set(first, site.held.name)
        Object.assign(chosen, wanted)
      }
    }
  }
  const git = gitVariables(
    sites.filter(({ use }) => use.name === 'git'),
    env,
  )
  if (git.skipped) notes.push('mayfly: git gets no settings: GIT_CONFIG_COUNT is too large already.')
  const { env: registries, files } = registryVariables(sites)
  return { env: { ...chosen, ...registries, ...git.variables }, files, notes }
}

/** For programs that the table does not know: `MAYFLY_URL_ORDERS_API`. */
function nameOf({ held, use }: Site): string {
  return `MAYFLY_URL_${held.name}_${use.name}`.replace(/[^A-Za-z0-9]+/g, '_').toUpperCase()
}

/** Why the program would send something there that is not ours; undefined: it would not. */
function foreignSecret({ secrets, hasLoginOnDisk }: Program, { held }: Site, env: Env): string | undefined {
  const own = new Set(held.placeholders.values())
  const present = secrets.filter((name) => (env[name] ?? '') !== '')
  const foreign = present.find((name) => !own.has(env[name] ?? ''))
  if (foreign !== undefined) return `${foreign} holds a secret of its own`
  if (present.length > 0 || hasLoginOnDisk !== true) return undefined
  return `none of ${secrets.join(', ')} holds a placeholder, and the program may have a login on disk`
}

/** An upstream below a path has it in front of all its rules. */
function rootOf({ use, url }: Site, { marker }: Program): string {
  if (marker === '') return url
  const path = use.allow.map((rule) => rule.path).find((one) => one.includes(marker))
  const before = path === undefined ? '' : path.slice(0, path.indexOf(marker))
  return /^(?:\/[\w.~-]+)*$/.test(before) ? `${url}${before}` : url
}
