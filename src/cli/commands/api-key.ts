import { flag } from '../frame/options.ts'
import { defineVerb } from '../frame/verb.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import { openAgentSession } from '../session/open.ts'
import { callLine } from '../tools/call-line.ts'
import { heldAnswer, RENEW_BEFORE_MS } from '../tools/held.ts'
import { singleSecret } from '../tools/parts.ts'
import { REQUEST_OPTIONS, requestFlags, requestOf } from '../tools/request.ts'

export const verb = defineVerb({
  description:
    'Prints an API key and nothing else, as `apiKeyHelper` of Claude Code expects. Returns the same key until five minutes before it expires, unless it is revoked.',
  options: { ...REQUEST_OPTIONS, printSettings: flag('print the settings for Claude Code instead of a key') },
  examples: [
    {
      command: 'mayfly api-key --backend anthropic --print-settings > .claude/settings.local.json',
      about: 'Claude Code in this directory gets its keys from the backend',
    },
    { command: 'mayfly api-key --backend anthropic', about: 'what Claude Code runs' },
  ],
  json: 'with --print-settings {apiKeyHelper, env: {CLAUDE_CODE_API_KEY_HELPER_TTL_MS}}; otherwise the bare key, with or without --json',
  exits: [3, 4, 5],
  run: async (context, options) => {
    const request = requestOf(options)
    const session = await openAgentSession(context)
    if (options.printSettings === true) {
      const helper = callLine(context, session, ['api-key', ...requestFlags(options)])
      const ttl = String(RENEW_BEFORE_MS.apiKey)
      await context.out.json({ apiKeyHelper: helper, env: { CLAUDE_CODE_API_KEY_HELPER_TTL_MS: ttl } })
      return
    }
    const toKey = (credential: HeldCredential) => singleSecret(credential, 'a key helper')
    await context.out.result(await heldAnswer(context, session, request, RENEW_BEFORE_MS.apiKey, toKey))
  },
})
