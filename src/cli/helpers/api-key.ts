import { shellLine } from '../git/wrapper.ts'
import { RENEW_BEFORE_MS } from '../tools/held.ts'
import { singleSecret } from '../tools/parts.ts'
import { helperVerb } from './helper-verb.ts'

export const verb = helperVerb({
  name: 'api-key',
  description:
    'Prints an API key and nothing else, as `apiKeyHelper` of Claude Code expects. Returns the same key until five minutes before it expires, unless it is revoked.',
  printed: 'print the settings for Claude Code instead of a key',
  examples: {
    'mayfly helper api-key --backend anthropic --print > .claude/settings.local.json':
      'Claude Code in this directory gets its keys from the backend',
    'mayfly helper api-key --backend anthropic': 'what Claude Code runs',
  },
  json: 'with --print {apiKeyHelper, env: {CLAUDE_CODE_API_KEY_HELPER_TTL_MS}}; otherwise the bare key, with or without --json',
  renewBeforeMs: RENEW_BEFORE_MS.apiKey,
  answer: () => (credential) => singleSecret(credential, 'a key helper'),
  configure: ({ out }, call) => {
    const ttl = String(RENEW_BEFORE_MS.apiKey)
    return out.json({ apiKeyHelper: shellLine(call), env: { CLAUDE_CODE_API_KEY_HELPER_TTL_MS: ttl } })
  },
})
