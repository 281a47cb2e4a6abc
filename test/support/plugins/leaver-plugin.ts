import { spawn } from 'node:child_process'
import { Type } from 'typebox'
import { defineKind, servePlugin } from '../../../src/plugin-sdk/plugin.ts'

/** A plugin whose check starts programs that leave its group, its session and its parent. `seconds` tells them from others. */
const leave = async (seconds: string) => {
  spawn('/bin/sleep', [seconds], { detached: true, stdio: 'ignore' }).unref()
  const twice = spawn('/usr/bin/setsid', ['--fork', '/bin/sleep', seconds], {
    detached: true,
    stdio: 'ignore',
  })
  await new Promise((resolve) => twice.once('exit', resolve))
}

servePlugin(
  defineKind({
    type: 'leaver',
    title: 'Leaver',
    version: '1.0.0',
    config: Type.Object({ seconds: Type.String() }, { additionalProperties: false }),
    revocation: 'expiry_only',
    scopes: { forms: [{ form: 'all', gives: 'do all' }], help: 'all.' },
    open: async ({ seconds }) => ({
      async check() {
        await leave(seconds)
        return []
      },
      issue: async () => ({ secret: 'none' }),
      async [Symbol.asyncDispose]() {},
    }),
  }),
)
