import { Key } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { ACCOUNT, ROOMS } from './rooms.ts'

const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ['Ctrl K', 'Go, search and act'],
  ['J K', 'Next and previous row'],
  ['Enter', 'Open the row'],
  ['X', 'Select the row'],
  ['Esc', 'Back, or close'],
  ['/', 'Filter the list'],
  ['A', 'Approve the request that is open'],
  ['D', 'Reject it, with a reason'],
  ['E', 'Approve it with fewer scopes or for less time'],
  ['F', 'Follow what happens, in Activity'],
  ['?', 'These keys'],
]

export function Help({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keys of the keyboard" onClose={onClose} isWide>
      <div className="grid gap-x-10 gap-y-1 sm:grid-cols-2">
        {[...KEYS, ...[...ROOMS, ACCOUNT].map(({ letter, name }) => [`G ${letter}`, name] as const)].map(
          ([keys, what]) => (
            <div
              key={keys}
              className="flex items-baseline justify-between gap-4 border-b border-line/60 py-1"
            >
              <span>{what}</span>
              <span className="flex gap-1">
                <span className="sr-only">{keys}</span>
                {keys.split(' ').map((one) => (
                  <Key key={one} name={one} />
                ))}
              </span>
            </div>
          ),
        )}
      </div>
    </Dialog>
  )
}
