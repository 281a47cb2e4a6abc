import { loadConfig } from '../../src/config/load.ts'
import { ConfigError, type Fault } from '../../src/domain/fault.ts'

/** An entry of `identities` without faults. */
export const ENTRY = {
  name: 'ci',
  issuer: 'https://token.actions.githubusercontent.com',
  audience: 'https://mayfly.example.com',
  subject_pattern: '.+',
  claims: { repository_id: '74', event_name: { pattern: 'push|release' } },
  agent: 'ci-{run_id}',
  scopes: ['github:acme/app:read'],
}

/** An entry of `platforms` without faults. */
export const PLATFORM = {
  name: 'hosted',
  issuer: 'https://agents.example',
  audience: 'https://mayfly.example.com',
}

/** Of a server at mayfly.example.com. */
export const identityOptions = (settings: object, files: Record<string, string> = {}) => ({
  argv: { config: 'mayfly.yaml' },
  env: {},
  readFile: async (path: string) => {
    if (path === 'mayfly.yaml')
      return Buffer.from(JSON.stringify({ issuer: 'https://mayfly.example.com', ...settings }))
    const text = files[path]
    if (text === undefined) throw Object.assign(new Error('none'), { code: 'ENOENT' })
    return Buffer.from(text)
  },
  readDirectory: async () => [],
})

/** The messages of the faults. */
export async function identityFaults(settings: object, files?: Record<string, string>): Promise<string[]> {
  try {
    await loadConfig(identityOptions(settings, files))
  } catch (error) {
    if (error instanceof ConfigError) return error.faults.map(({ message }: Fault) => message)
    throw error
  }
  return []
}

export const loadIdentities = async (settings: object) => (await loadConfig(identityOptions(settings))).config
