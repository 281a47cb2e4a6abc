import { parseDuration } from '../../domain/duration.ts'
import { isObject } from '../../domain/formats/json.ts'
import type { Path } from '../../files/yaml-file.ts'
import type { ProxySettings } from '../../proxy/types.ts'
import type { Faults, Shape } from './shape.ts'

/** What a file or the flags say about the proxy; the rest is as usual. */
export type ProxyWish = Partial<ProxySettings>

export const OTHERS = ['inspect', 'refuse'] as const
export const ON_MISUSE = ['refuse', 'end_run'] as const
/** Under `proxy:` of a .mayfly.yaml. */
export const PROJECT_FIELDS = ['others', 'tunnel', 'on_misuse', 'idle_timeout'] as const
const MOST_NAMES = 256
export const LEAST_IDLE_MS = 1_000
export const MOST_IDLE_MS = 86_400_000
const NAME = /^(\*\.)?(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_](?:[a-z0-9_-]{0,62}))*$/i

const USUAL: ProxySettings = {
  others: 'inspect',
  tunnel: [],
  onMisuse: 'refuse',
  idleMs: 600_000,
  listen: { host: '127.0.0.1', port: 0 },
  uids: undefined,
}

/** Later ones say more. */
export function settingsOf(...wishes: readonly (ProxyWish | undefined)[]): ProxySettings {
  return Object.assign({ ...USUAL }, ...wishes.map((wish) => wish ?? {})) as ProxySettings
}

/** The `proxy:` of a .mayfly.yaml; undefined: without a proxy. Adds every mistake to `faults`. */
export function readProjectProxy(faults: Faults, path: Path, given: unknown): ProxyWish | undefined {
  if (given === undefined || given === false) return undefined
  if (given === true || given === null) return {}
  if (!isObject(given)) {
    faults.add(path, 'proxy must be true, or hold "key: value" lines')
    return {}
  }
  faults.unknownKeys(path, given, PROJECT_FIELDS)
  return readWish(faults, path, given)
}

/** Adds every mistake to `faults`; with any, the result must not be used. */
export function readWish(faults: Faults, path: Path, given: Shape): ProxyWish {
  const one = <T>(key: string, read: (value: unknown) => T | undefined, message: string): T | undefined => {
    const value = given[key]
    if (value === undefined) return undefined
    const found = read(value)
    if (found === undefined) faults.add([...path, key], `${key} ${message}`)
    return found
  }
  return defined({
    others: one('others', among(OTHERS), 'must be inspect or refuse'),
    onMisuse: one('on_misuse', among(ON_MISUSE), 'must be refuse or end_run'),
    tunnel: one('tunnel', readTunnel, 'must be a list of host names, such as "*.example.com"'),
    idleMs: one('idle_timeout', readIdle, 'must be a duration from 1s to 24h'),
  })
}

export function readTunnel(given: unknown): string[] | undefined {
  if (!Array.isArray(given) || given.length > MOST_NAMES) return undefined
  const names = given.map((name) =>
    typeof name === 'string' && NAME.test(name) ? name.toLowerCase() : undefined,
  )
  return names.includes(undefined) ? undefined : (names as string[])
}

function readIdle(given: unknown): number | undefined {
  const ms = typeof given === 'string' ? parseDuration(given) : undefined
  return ms !== undefined && ms >= LEAST_IDLE_MS && ms <= MOST_IDLE_MS ? ms : undefined
}

const among =
  <const T extends string>(words: readonly T[]) =>
  (given: unknown): T | undefined =>
    words.find((word) => word === given)

/** Without what is undefined, so that it replaces nothing. */
export function defined<T extends object>(given: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>
  }
}
