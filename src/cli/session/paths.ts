import { join } from 'node:path'
import type { Surroundings } from '../frame/surroundings.ts'

type Where = Pick<Surroundings, 'env' | 'home'>

/** `$XDG_CONFIG_HOME/mayfly` or `~/.config/mayfly`: profiles, and secrets without a keychain. */
export function configPath(where: Where, ...parts: readonly string[]): string {
  return join(base(where, 'XDG_CONFIG_HOME', '.config'), 'mayfly', ...parts)
}

/** `$XDG_CACHE_HOME/mayfly` or `~/.cache/mayfly`: data that can be fetched again. */
export function cachePath(where: Where, ...parts: readonly string[]): string {
  return join(base(where, 'XDG_CACHE_HOME', '.cache'), 'mayfly', ...parts)
}

/** `$XDG_DATA_HOME/mayfly` or `~/.local/share/mayfly`: programs and files for other tools. */
export function dataPath(where: Where, ...parts: readonly string[]): string {
  return join(base(where, 'XDG_DATA_HOME', '.local/share'), 'mayfly', ...parts)
}

/** The XDG Base Directory Specification says to ignore relative paths. */
function base({ env, home }: Where, name: string, standard: string): string {
  const value = env[name] ?? ''
  return value.startsWith('/') ? value : join(home, standard)
}
