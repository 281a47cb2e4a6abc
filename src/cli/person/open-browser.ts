import { spawn } from 'node:child_process'
import type { Context } from '../frame/verb.ts'

/**
 * Opens the address in the browser of this machine. False where that is not possible: over SSH the browser is elsewhere,
 * and without a display there is none.
 */
export function openBrowser(
  { env, platform }: Pick<Context, 'env' | 'platform'>,
  url: string,
): Promise<boolean> {
  const isSet = (name: string) => (env[name] ?? '') !== ''
  const hasDisplay =
    platform === 'darwin' || platform === 'win32' || isSet('DISPLAY') || isSet('WAYLAND_DISPLAY')
  if (!hasDisplay || isSet('SSH_CONNECTION')) return Promise.resolve(false)
  const [program, ...argv] = openerOf(platform)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  // No shell reads the address.
  const child = spawn(program, [...argv, url], { env: { ...env }, stdio: 'ignore', detached: true })
  child.on('error', () => resolve(false))
  child.on('spawn', () => resolve(true))
  child.unref()
  return promise
}

function openerOf(platform: NodeJS.Platform): readonly [string, ...string[]] {
  switch (platform) {
    case 'darwin':
      return ['open']
    case 'win32':
      // What `start` does, without its shell.
      return ['rundll32', 'url.dll,FileProtocolHandler']
    default:
      return ['xdg-open']
  }
}
