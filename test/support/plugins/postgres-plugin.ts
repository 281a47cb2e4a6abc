import { postgres } from '../../../src/backends/postgres/kind.ts'
import { defineKind, servePlugin } from '../../../src/plugin-sdk/plugin.ts'

/** The built-in kind, in a process of its own. */
servePlugin(
  defineKind({
    ...postgres,
    type: 'postgres-plugin',
    version: '1.0.0',
    offers: ['list', 'keepUp', 'retire', 'rotation'],
    environment: { PGHOST: '{host}', PGUSER: '{username}', PGPASSWORD: '{password}' },
  }),
)
