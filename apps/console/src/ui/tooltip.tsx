import { Tooltip as Radix } from 'radix-ui';
import type { ReactElement } from 'react';

export const TooltipProvider = Radix.Provider;

export function Tooltip({ text, children }: { text: string; children: ReactElement }) {
  return (
    <Radix.Root>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          sideOffset={6}
          collisionPadding={8}
          className="appear z-60 max-w-xs rounded-md bg-ink px-2 py-1 text-xs text-canvas shadow-float"
        >
          {text}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
