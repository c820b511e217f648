import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import React from 'react';

import type { JobView } from '../model/protocol';
import type { ILab } from '../tokens';
import { gpuIcon } from './icons';
import { Panel } from './panel';

/** Ages on display grow also while there is no news. */
const CLOCK_MS = 5000;

/** The sidebar. It is drawn only while it can be seen. */
export class Sidebar extends ReactWidget {
  constructor(
    private readonly lab: ILab,
    private readonly onCancel: (job: JobView) => void
  ) {
    super();
    this.id = 'gpu-workbench-sidebar';
    this.title.icon = gpuIcon;
    this.title.caption = 'GPUs and Queue';
    this.addClass('gw-sidebar');
    this.node.setAttribute('role', 'region');
    this.node.setAttribute('aria-label', 'GPUs and queue');
    lab.changed.connect(() => this.draw());
  }

  protected override render(): React.JSX.Element {
    return <Panel lab={this.lab} onCancel={this.onCancel} />;
  }

  protected override onAfterShow(message: Message): void {
    super.onAfterShow(message);
    this.clock = window.setInterval(() => this.draw(), CLOCK_MS);
    this.draw();
  }

  protected override onBeforeHide(message: Message): void {
    window.clearInterval(this.clock);
    super.onBeforeHide(message);
  }

  private draw(): void {
    if (this.isVisible) {
      this.update();
    }
  }

  private clock = 0;
}
