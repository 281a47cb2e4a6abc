import { loadConfig } from '../../src/config/load.ts'
import { ConfigError, type Fault } from '../../src/domain/fault.ts'

/** Sources of a configuration, held in memory; `yaml` is the file `m.yaml`, named by `--config`. */
export interface ConfigGiven {
  argv?: Record<string, unknown>
  env?: Record<string, string>
  yaml?: string
  files?: Record<string, string | Uint8Array>
}

export async function loadGiven({ argv = {}, env = {}, yaml, files = {} }: ConfigGiven = {}) {
  const all: Record<string, string | Uint8Array> = {
    ...files,
    ...(yaml === undefined ? {} : { 'm.yaml': yaml }),
  }
  return await loadConfig({
    argv: yaml === undefined ? argv : { config: 'm.yaml', ...argv },
    env,
    readFile: async (path) => {
      const text = all[path]
      if (text === undefined) throw Object.assign(new Error(`ENOENT ${path}`), { code: 'ENOENT' })
      return typeof text === 'string' ? Buffer.from(text) : text
    },
  })
}

export async function faultsOf(given: ConfigGiven): Promise<readonly Fault[]> {
  try {
    await loadGiven(given)
  } catch (error) {
    if (error instanceof ConfigError) return error.faults
    throw error
  }
  throw new Error('it was accepted')
}
