import { shellWord } from '../../domain/formats/shell-word.ts'
import { CliError } from '../frame/failure.ts'
import type { Surroundings } from '../frame/surroundings.ts'
import type { Draft } from './config-file.ts'
import type { GitHost } from './host.ts'
import { type Identity, identitySettings } from './identity.ts'
import { runGit } from './run-git.ts'

export type Setting = readonly [key: string, value: string]

/** Marks that we set up signing; `beforeKey` holds the previous values. */
export const SIGNING_MARK = 'mayfly.signing'
const hostMark = (url: string) => `mayfly.${url}.backend`
export const HOST_MARKS = '^mayfly\\.https?://.*\\.backend$'
const beforeKey = (key: string) => `mayfly.before.${key.replace('.', '-')}`

/** `program` is the path that git runs as gpg. */
export function signingSettings(identity: Identity, program: string): Setting[] {
  return [...identitySettings(identity), ['gpg.program', program], [SIGNING_MARK, 'true']]
}

/** The empty value first: it removes helpers that would write our secret to disk on git's `store`. */
export function hostSettings(host: GitHost, backend: string, command: readonly string[]): Setting[] {
  const key = `credential.${host.url}.helper`
  return [
    [key, ''],
    [key, `!${command.map(shellWord).join(' ')}`],
    [hostMark(host.url), backend],
  ]
}

/** Writes the settings and saves previous values for `takeAway`. Throws `CliError` if another helper is configured. */
export async function apply(draft: Draft, settings: readonly Setting[]): Promise<void> {
  const isFirst = (await draft.get(SIGNING_MARK)) === undefined
  const byKey = Map.groupBy(settings, ([key]) => key)
  for (const [key, entries] of byKey) {
    const url = /^credential\.(.*)\.helper$/.exec(key)?.[1]
    if (url !== undefined) await refuseForeignHelper(draft, key, url)
    else if (isFirst && !key.startsWith('mayfly.')) {
      const before = await draft.get(key)
      if (before !== undefined) await draft.put(beforeKey(key), before)
    }
    await draft.put(key, ...entries.map(([, value]) => value))
  }
}

async function refuseForeignHelper(draft: Draft, key: string, url: string): Promise<void> {
  if ((await draft.get(hostMark(url))) !== undefined || (await draft.get(key)) === undefined) return
  throw new CliError('helper_exists', `git already has another credential helper for ${url}.`, {
    hint: `First remove it: git config --unset-all ${shellWord(key)}`,
  })
}

export interface TakenAway {
  readonly signing: boolean
  /** URLs. */
  readonly hosts: readonly string[]
}

/** Undoes `apply` and nothing else. */
export async function takeAway(draft: Draft): Promise<TakenAway> {
  const signing = (await draft.get(SIGNING_MARK)) !== undefined
  const ours = signingSettings({ name: '', email: '', keyId: '' }, '')
  for (const [key] of signing ? ours : []) {
    const before = await draft.get(beforeKey(key))
    await draft.put(key, ...(before === undefined ? [] : [before]))
    await draft.put(beforeKey(key))
  }
  const hosts = (await draft.find(HOST_MARKS)).map(([key]) => urlOf(key))
  for (const url of hosts) {
    await draft.put(`credential.${url}.helper`)
    await draft.put(hostMark(url))
  }
  return { signing, hosts }
}

/** The same settings as environment variables, after the `already` existing ones. */
export function processSettings(
  settings: readonly Setting[],
  already: string | undefined,
): Record<string, string> {
  const first = /^\d{1,4}$/.test(already ?? '') ? Number(already) : 0
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(first + settings.length) }
  for (const [index, [key, value]] of settings.entries()) {
    variables[`GIT_CONFIG_KEY_${first + index}`] = key
    variables[`GIT_CONFIG_VALUE_${first + index}`] = value
  }
  return variables
}

/** The URL in a host mark. */
export const urlOf = (key: string) => key.replace(/^mayfly\./, '').replace(/\.backend$/, '')

/** The settings in force, from any file or variable. */
export interface InForce {
  readonly signing: (Identity & { readonly program: string; readonly scope: string }) | undefined
  readonly hosts: readonly { readonly url: string; readonly backend: string; readonly scope: string }[]
}

const KEYS = `^mayfly\\.|^user\\.(name|email|signingkey)$|^gpg\\.program$`

export async function readInForce(where: Pick<Surroundings, 'env' | 'cwd' | 'signal'>): Promise<InForce> {
  const { code, stdout } = await runGit(where, ['config', '-z', '--show-scope', '--get-regexp', KEYS])
  if (code > 1)
    throw new CliError('git_config_failed', 'git cannot read its configuration.', {
      hint: 'Run `git config --list` for the reason.',
    })
  return fromEntries(parseScoped(stdout))
}

type ScopedEntry = readonly [scope: string, key: string, value: string]

/** `scope\0key\nvalue\0` */
function parseScoped(text: string): ScopedEntry[] {
  const parts = text.split('\0')
  const entries: ScopedEntry[] = []
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [key = '', ...value] = (parts[at + 1] ?? '').split('\n')
    entries.push([parts[at] ?? '', key, value.join('\n')])
  }
  return entries
}

/** Entries come in the order git reads them; the last value of a key counts. */
function fromEntries(entries: readonly ScopedEntry[]): InForce {
  const last = new Map(entries.map(([scope, key, value]) => [key, { scope, value }]))
  const value = (key: string) => last.get(key)?.value ?? ''
  const isMark = new RegExp(HOST_MARKS)
  const hosts = [...last]
    .filter(([key]) => isMark.test(key))
    .map(([key, { scope, value: backend }]) => ({ url: urlOf(key), backend, scope }))
  const mark = last.get(SIGNING_MARK)
  if (mark === undefined) return { signing: undefined, hosts }
  const identity = { name: value('user.name'), email: value('user.email'), keyId: value('user.signingkey') }
  return { signing: { ...identity, program: value('gpg.program'), scope: mark.scope }, hosts }
}
