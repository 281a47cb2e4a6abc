import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildApp } from '../src/app/app.ts'
import { loadConfig } from '../src/config/load.ts'
import { openApiDocument } from '../src/http/routing/openapi.ts'
import { createLogger } from '../src/log/log.ts'

/** docs/reference/openapi.json: the document that the whole service serves, with every route registered. */
export async function renderOpenApi(): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'mayfly-docs-'))
  const { config } = await loadConfig({
    argv: { dataDir },
    env: {},
    readFile: () => Promise.reject(new Error('no files')),
  })
  const app = await buildApp(config, createLogger({ level: 'silent', format: 'json' }))
  try {
    return `${JSON.stringify(openApiDocument(app), null, 2)}\n`
  } finally {
    await app.close()
    await rm(dataDir, { recursive: true, force: true })
  }
}
