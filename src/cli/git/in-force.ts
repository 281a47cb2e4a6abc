import { CliError } from '../frame/failure.ts'
import type { Surroundings } from '../frame/surroundings.ts'
import type { Identity } from './identity.ts'
import { runGit } from './run-git.ts'
import { HOST_MARKS, SIGNING_MARK, urlOf } from './settings.ts'

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
