import type { UseRules } from '../../../../src/client/wire.ts'
import { Copy } from '../../ui/copy.tsx'
import { Hostile } from '../../ui/text.tsx'

/** Characters at first: some rules. */
const SHOWN = 1_500

/** What an administrator named beside the rules of the kind. The command changes it, from a file. */
export function ShownUses({ uses }: { readonly uses: UseRules | undefined }) {
  if (uses === undefined)
    return (
      <p className="text-muted">
        What its kind says. <code>mayfly backend update NAME --uses @uses.json</code> names more.
      </p>
    )
  const text = JSON.stringify(uses, null, 2)
  return (
    <>
      <p className="mb-2 text-muted">What its kind says, and before that:</p>
      <p className="rounded-sm border border-line bg-sunken px-3 py-2 font-mono text-xs">
        <Hostile text={text} most={SHOWN} />
      </p>
      <Copy text={text} what="the rules" />
    </>
  )
}
