import { EXIT } from '../../cli/frame/failure.ts'
import { table } from '../../cli/frame/output.ts'
import { defineVerb } from '../../cli/frame/verb.ts'
import { fileOf, noteFaults } from '../config-file.ts'
import { issuerOf, readTrustedFile } from './read.ts'

export const verb = defineVerb({
  description:
    'Checks the identities and platforms in a configuration file like a starting server, and reports every fault with its line. It warns of entries that trust more than they seem to: names that somebody else can take over, or code that nobody reviewed. Needs no server.',
  arguments: [{ name: '[file]', description: 'the configuration file [env: MAYFLY_CONFIG]' }],
  examples: { 'mayfly identity check mayfly.yaml': 'before restarting the server' },
  json: '{"file", "identities": [{"name", "issuer", "subject", "agent", "scopes", "mode"}], "platforms": [{"name", "issuer"}], "warnings": [{"entry", "message"}], "faults": [{"source": "FILE:LINE:COLUMN", "message"}]}',
  run: async (context, _options, given) => {
    const { out } = context
    const file = fileOf(context, given)
    const { trusted, faults } = await readTrustedFile(context, file)
    const { identityWarnings } = await import('../../config/identity-warnings.ts')
    const warnings = trusted === undefined ? [] : identityWarnings(trusted)
    const identities = (trusted?.identities ?? []).map((entry) => {
      const { name, subject, agent, scopes, mode } = entry
      return { name, issuer: issuerOf(entry), subject: subject.text, agent: agent.text, scopes, mode }
    })
    const platforms = (trusted?.platforms ?? []).map(({ name, issuer }) => ({ name, issuer }))
    if (out.isJson) await out.json({ file, identities, platforms, warnings, faults })
    else noteFaults(context, faults)
    if (faults.length > 0) return EXIT.failed
    if (out.isJson) return EXIT.done
    const rows = [
      ...identities.map((one) => [
        one.name,
        one.issuer,
        one.subject,
        one.mode === 'observe' ? `${one.agent} (observed)` : one.agent,
        one.scopes.join(' '),
      ]),
      ...platforms.map(({ name, issuer }) => [name, issuer, '(each is an agent)', `${name}-…`, '']),
    ]
    await out.result(table(['ENTRY', 'ISSUER', 'SUBJECT', 'AGENT', 'SCOPES'], rows))
    for (const { entry, message } of warnings) out.note(`Warning: ${entry}: ${message}.`)
    out.note(`${file}: no faults.`)
    return EXIT.done
  },
})
