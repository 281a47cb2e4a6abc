import type { Agent } from 'node:https'
import { usage } from './failure.ts'
import type { Surroundings } from './surroundings.ts'

/**
 * Connects through the proxy of HTTPS_PROXY, and directly to the hosts of NO_PROXY; both also work in lower case.
 * Undefined without a proxy. Throws `CliError` (usage) if the variable holds something else.
 */
export function proxyOf(env: Surroundings['env'], node = process.versions.node): Agent | undefined {
  const address = env['https_proxy'] || env['HTTPS_PROXY'] || ''
  if (address === '') return undefined
  if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol))
    throw usage(
      'HTTPS_PROXY is not the address of an HTTP proxy.',
      'Write it as http://proxy.example.com:3128.',
    )
  const [major = 0, minor = 0] = node.split('.').map(Number)
  if (major === 24 && minor < 5)
    throw usage(
      `HTTPS_PROXY needs Node.js 24.5 or later; this is ${node}.`,
      'Upgrade it, or unset HTTPS_PROXY.',
    )
  const { Agent } = process.getBuiltinModule('node:https')
  const proxyEnv = { HTTPS_PROXY: address, NO_PROXY: env['no_proxy'] || env['NO_PROXY'] || '' }
  return new Agent({ keepAlive: true, proxyEnv })
}
