# SPDX-License-Identifier: MIT
"""A transformer learns to turn sequences round: padded batches, a schedule, clipping, one table for input and output."""
import tinycore as torch
from tinycore import nn
from tinycore.utils.data import DataLoader, TensorDataset

torch.manual_seed(7)


class Turner(nn.Module):
    def __init__(self, n_tokens=8, d=32, length=6):
        super().__init__()
        self.table, self.place = nn.Embedding(n_tokens, d, padding_idx=0), nn.Parameter(torch.randn(length, d) * 0.5)
        layer = nn.TransformerEncoderLayer(d, 4, 64, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(d))
        self.head = nn.Linear(d, n_tokens, bias=False)
        self.head.weight = self.table.weight  # one tensor under two names

    def forward(self, tokens):
        return self.head(self.encoder(self.table(tokens) + self.place, src_key_padding_mask=tokens == 0)) / 5


tokens = torch.randint(1, 8, (256, 6))
loader = DataLoader(TensorDataset(tokens, tokens.flip(1)), batch_size=32, shuffle=True, seed=1)
model, criterion = Turner(), nn.CrossEntropyLoss(ignore_index=0)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=18)
losses = []
for epoch in range(18):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x).reshape(-1, 8), y.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    losses.append(loss.item())
    scheduler.step()
print(len(model.state_dict()), "tensors,", len(list(model.parameters())), "of them different")
print("a tenth of the loss at first:", losses[-1] < losses[0] / 10)
