import { redis } from '../../../src/backends/redis/kind.ts'
import { defineKind, servePlugin } from '../../../src/plugin-sdk/plugin.ts'

/** The built-in kind, in a process of its own. */
servePlugin(
  defineKind({
    ...redis,
    type: 'redis-plugin',
    version: '1.0.0',
    offers: ['list', 'rotation'],
    environment: { REDIS_URL: '{url}', REDISCLI_AUTH: '{password}' },
    scopes: {
      ...redis.scopes,
      forms: [
        { form: 'read:<prefix...>', gives: 'read the keys that begin with a prefix' },
        { form: 'write:<prefix...>', gives: 'read, write and delete those keys' },
        { form: 'channel:<name...>', gives: 'publish and subscribe to a channel' },
        { form: 'read', gives: 'read all keys' },
        { form: 'write', gives: 'read and write all keys' },
        { form: 'channel', gives: 'use all channels' },
        { form: 'script', gives: 'run Lua scripts on the keys of its other scopes' },
        { form: '*', gives: 'do all of this with all keys and channels' },
      ],
    },
  }),
)
